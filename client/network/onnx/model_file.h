#ifndef HONE_CLIENT_NETWORK_ONNX_MODEL_FILE_H_
#define HONE_CLIENT_NETWORK_ONNX_MODEL_FILE_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// A parsed model whose weights stay where they are.
struct ModelFile {
  ::onnx::ModelProto model;  // its initializers have no raw_data
  // The raw_data of each initializer, as a part of the file's bytes; nullopt: it has none.
  std::vector<std::optional<absl::string_view>> raw_data;
};

// Parses the bytes of a model without copying its weights; raw_data are views of `bytes`.
// InvalidArgument: this is not a model, or it is truncated or too large for a protocol message.
absl::StatusOr<ModelFile> ParseModelFile(absl::string_view bytes);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_MODEL_FILE_H_
