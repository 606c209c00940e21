#include "client/network/onnx/tensor_file.h"

#include <limits>
#include <utility>

#include "client/network/onnx/tensor_proto.h"
#include "common/base/status_macros.h"

namespace hone::onnx {

absl::StatusOr<NamedTensor> ParseTensorFile(absl::string_view bytes) {
  ::onnx::TensorProto proto;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("this is not a tensor of ONNX, or it is truncated");
  }
  std::string name = proto.name();
  ExternalData no_files("");
  HONE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(std::move(proto), no_files));
  return NamedTensor{std::move(name), std::move(tensor)};
}

}  // namespace hone::onnx
