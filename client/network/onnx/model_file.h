#ifndef HONE_CLIENT_NETWORK_ONNX_MODEL_FILE_H_
#define HONE_CLIENT_NETWORK_ONNX_MODEL_FILE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// A file whose bytes are read from the disk when they are first used. It must not be changed or
// truncated while it is mapped.
class MappedFile {
 public:
  // NotFound, PermissionDenied: the file cannot be read. InvalidArgument: it is a folder, a pipe or
  // another special file. ResourceExhausted: out of address space. The messages name the path.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}

  void* const data_;  // null if the file is empty
  const size_t size_;
};

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
