#include "client/network/onnx/external_data.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace fs = std::filesystem;

namespace {

// Returns the path of a file inside the folder, with all symbolic links resolved.
absl::StatusOr<fs::path> Resolve(const std::string& folder, const std::string& location) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("has its elements in the file '", location, "', ", why));
  };
  if (folder.empty()) return refuse("but the model is not a file in a folder");
  const fs::path relative(location);
  const bool leaves = std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (location.empty() || relative.is_absolute() || leaves) {
    return refuse("which is not a path inside the model's folder");
  }
  if (location.find('\0') != std::string::npos) return refuse("which is not a path");
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot open ", folder));
  fs::path path = fs::canonical(root / relative, error);
  if (error) {
    return ErrnoStatus(error.value(),
                       absl::StrCat("has its elements in a file that cannot be opened: ",
                                    (root / relative).string()));
  }
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end != root.end()) return refuse("which is a link to the outside of the model's folder");
  return path;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> ExternalData::Open(const std::string& location) {
  if (const auto open = files_.find(location); open != files_.end()) return open->second;
  HONE_ASSIGN_OR_RETURN(const fs::path path, Resolve(folder_, location));
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path.string());
  if (file.ok()) return files_[location] = *std::move(file);
  return absl::Status(file.status().code(),
                      absl::StrCat("has its elements in '", location,
                                   "', which cannot be read: ", file.status().message()));
}

absl::StatusOr<graph::ConstantData> ExternalData::Map(const ExternalRange& range) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, Open(range.location));
  const int64_t size = static_cast<int64_t>(file->bytes().size());
  if (range.offset < 0 || range.offset > size || range.length > size - range.offset) {
    return absl::InvalidArgumentError(absl::StrCat("needs ", range.length, " bytes from byte ",
                                                   range.offset, " of the file '", range.location,
                                                   "', which has ", size, " bytes"));
  }
  return graph::ConstantData(file, file->bytes().substr(range.offset, range.length));
}

}  // namespace hone::onnx
