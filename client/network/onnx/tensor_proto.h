#ifndef HONE_CLIENT_NETWORK_ONNX_TENSOR_PROTO_H_
#define HONE_CLIENT_NETWORK_ONNX_TENSOR_PROTO_H_

#include <optional>

#include "absl/status/statusor.h"
#include "client/network/onnx/external_data.h"
#include "client/network/onnx/tensor.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// Converts a number of ONNX's enumeration of element types. Unimplemented: Hone does not have the
// type; the message names it. InvalidArgument: there is no such number.
absl::StatusOr<ir::DType> ElementType(int32_t number);

// Converts a tensor; takes over its bytes if they are raw. `raw_data`: its raw bytes if they are
// not in `proto`. Every error names the tensor. InvalidArgument: its shape is not legal, or the
// number of elements does not fit the shape. Unimplemented: Hone does not have the element type.
// Other errors are those of ExternalData::Map.
absl::StatusOr<Tensor> ReadTensor(::onnx::TensorProto proto, ExternalData& files,
                                  std::optional<graph::ConstantData> raw_data = std::nullopt);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_TENSOR_PROTO_H_
