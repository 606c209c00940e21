#include "client/network/onnx/import.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/external_data.h"
#include "client/network/onnx/mapped_file.h"
#include "client/network/onnx/model_file.h"
#include "client/network/onnx/model_importer.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

// The graph shares the bytes, which belong to `owner`.
absl::StatusOr<graph::Graph> Import(const std::shared_ptr<const void>& owner,
                                    absl::string_view bytes, const std::string& folder,
                                    const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(ModelFile file, ParseModelFile(bytes));
  std::vector<std::optional<graph::ConstantData>> raw_data;
  for (const auto& part : file.raw_data) {
    raw_data.push_back(part ? std::make_optional(graph::ConstantData(owner, *part)) : std::nullopt);
  }
  ExternalData files(folder);
  return ImportModel(file.model, raw_data, files, options);
}

}  // namespace

absl::StatusOr<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  absl::StatusOr<graph::Graph> graph =
      Import(file, file->bytes(), folder.empty() ? "." : folder, options);
  if (graph.ok()) return graph;
  return absl::Status(graph.status().code(), absl::StrCat(path, ": ", graph.status().message()));
}

absl::StatusOr<graph::Graph> ImportOnnxBytes(absl::string_view bytes, const std::string& folder,
                                             const ImportOptions& options) {
  const auto copy = std::make_shared<const std::string>(bytes);
  return Import(copy, *copy, folder, options);
}

absl::StatusOr<Digest> DigestOfModel(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  HONE_ASSIGN_OR_RETURN(const ModelFile model, ParseModelFile(file->bytes()));
  std::set<std::string> locations;
  for (const ::onnx::TensorProto& tensor : model.model.graph().initializer()) {
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") locations.insert(entry.value());
    }
  }
  DigestBuilder builder;
  builder.Add(DigestOf(file->bytes()));
  for (const std::string& location : locations) {
    const std::filesystem::path beside = std::filesystem::path(path).parent_path() / location;
    HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> weights,
                          MappedFile::Open(beside.string()));
    builder.Add(location).Add(DigestOf(weights->bytes()));
  }
  return builder.Finish();
}

}  // namespace hone::onnx
