#ifndef HONE_CLIENT_ONNX_TENSOR_H_
#define HONE_CLIENT_ONNX_TENSOR_H_

#include "common/graph/graph.h"

namespace hone::onnx {

// A tensor with its elements.
struct Tensor {
  graph::TensorType type;
  graph::ConstantData data;  // as many bytes as the type has
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_ONNX_TENSOR_H_
