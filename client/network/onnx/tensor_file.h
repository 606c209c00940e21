#ifndef HONE_CLIENT_NETWORK_ONNX_TENSOR_FILE_H_
#define HONE_CLIENT_NETWORK_ONNX_TENSOR_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"

namespace hone::onnx {

// A tensor with its elements.
struct Tensor {
  graph::TensorType type;
  graph::ConstantData data;  // has the size of the type
};

// A tensor from a separate file (.pb), as in ONNX's test data.
struct NamedTensor {
  std::string name;  // may be empty
  Tensor tensor;
};

// Parses the bytes of a file, which may be arbitrary. InvalidArgument: they are not a tensor, or
// its elements are missing. Unimplemented: Hone does not have the type of its elements.
absl::StatusOr<NamedTensor> ParseTensorFile(absl::string_view bytes);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_TENSOR_FILE_H_
