#ifndef HONE_CLIENT_NETWORK_ONNX_TENSOR_H_
#define HONE_CLIENT_NETWORK_ONNX_TENSOR_H_

#include "client/network/graph/graph.h"

namespace hone::onnx {

// A tensor with its elements.
struct Tensor {
  graph::TensorType type;
  graph::ConstantData data;  // has the size of the type
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_TENSOR_H_
