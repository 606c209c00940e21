#ifndef HONE_COMMON_OPERATOR_FAMILIES_H_
#define HONE_COMMON_OPERATOR_FAMILIES_H_

#include <vector>

#include "common/operator/operator.h"

// The families of operators, each in one file with the builders and their OperatorInfo.
namespace hone::op {

std::vector<OperatorInfo> AttentionOperators();
std::vector<OperatorInfo> CapsuleOperators();
std::vector<OperatorInfo> ConvolutionOperators();
std::vector<OperatorInfo> DenseOperators();
std::vector<OperatorInfo> DepthwiseOperators();
std::vector<OperatorInfo> ElementwiseOperators();
std::vector<OperatorInfo> LstmOperators();
std::vector<OperatorInfo> MatmulOperators();
std::vector<OperatorInfo> NormalizationOperators();
std::vector<OperatorInfo> PoolingOperators();
std::vector<OperatorInfo> QuantizedOperators();
std::vector<OperatorInfo> ReductionOperators();
std::vector<OperatorInfo> SoftmaxOperators();
std::vector<OperatorInfo> TransposedConvolutionOperators();
std::vector<OperatorInfo> TranspositionOperators();
std::vector<OperatorInfo> WinogradOperators();

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_FAMILIES_H_
