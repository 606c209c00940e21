#ifndef HONE_COMMON_OPERATOR_LIBRARY_H_
#define HONE_COMMON_OPERATOR_LIBRARY_H_

#include <vector>

#include "common/operator/operator.h"

// The definitions of all operators. README.md explains their texts.
namespace hone::op {

std::vector<OperatorInfo> MatrixOperators();  // products of matrices, and what is made of them
std::vector<OperatorInfo> RowOperators();     // element-wise, reductions, normalization, transposes
std::vector<OperatorInfo> ImageOperators();   // convolutions and pooling

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_LIBRARY_H_
