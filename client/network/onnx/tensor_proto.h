#ifndef HONE_CLIENT_NETWORK_ONNX_TENSOR_PROTO_H_
#define HONE_CLIENT_NETWORK_ONNX_TENSOR_PROTO_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/onnx/model_file.h"
#include "client/network/onnx/tensor_file.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// The bytes of a tensor that are stored in a file beside the model.
struct ExternalRange {
  std::string location;  // relative to the model's folder
  int64_t offset = 0;
  int64_t length = 0;
};

// Files beside a model with the elements of tensors. Each file is mapped once, and must not be
// changed while a graph uses it. A model cannot read files outside of its folder.
class ExternalData {
 public:
  // `folder`: the folder of the model; "" if the model is not a file, and so has no external data.
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}

  // InvalidArgument: there is no folder, the location is not a relative path to a file inside it,
  // or the range is not inside the file. NotFound, PermissionDenied: the file cannot be read.
  absl::StatusOr<graph::ConstantData> Map(const ExternalRange& range);

 private:
  absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& location);

  const std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
};

// Converts a number of ONNX's enumeration of element types. Unimplemented: Hone does not have the
// type; the message names it. InvalidArgument: there is no such number.
absl::StatusOr<ir::DType> ElementType(int32_t number);
// The number of a type in that enumeration.
int32_t ElementNumber(ir::DType dtype);

// Converts a tensor; takes over its bytes if they are raw. `raw_data`: its raw bytes if they are
// not in `proto`. Every error names the tensor. InvalidArgument: its shape is not legal, or the
// number of elements does not fit the shape. Unimplemented: Hone does not have the element type.
// Other errors are those of ExternalData::Map.
absl::StatusOr<Tensor> ReadTensor(::onnx::TensorProto proto, ExternalData& files,
                                  std::optional<graph::ConstantData> raw_data = std::nullopt);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_TENSOR_PROTO_H_
