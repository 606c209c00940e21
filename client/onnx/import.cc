#include "client/onnx/import.h"

#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/onnx/external_data.h"
#include "client/onnx/model_importer.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::onnx {

absl::StatusOr<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  absl::StatusOr<graph::Graph> graph =
      ImportOnnxBytes(bytes, folder.empty() ? "." : folder, options);
  if (graph.ok()) return graph;
  return absl::Status(graph.status().code(), absl::StrCat(path, ": ", graph.status().message()));
}

absl::StatusOr<graph::Graph> ImportOnnxBytes(absl::string_view bytes, const std::string& folder,
                                             const ImportOptions& options) {
  ::onnx::ModelProto model;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("this is not an ONNX model, or it is truncated");
  }
  ExternalData files(folder);
  return ImportModel(model, files, options);
}

}  // namespace hone::onnx
