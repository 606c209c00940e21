#include "client/onnx/external_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace fs = std::filesystem;

struct ExternalData::Mapping {
  Mapping(void* data, size_t size) : data(data), size(size) {}
  ~Mapping() {
    if (data != nullptr) ::munmap(data, size);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void* const data;  // null if the file is empty
  const size_t size;
};

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

absl::StatusOr<std::shared_ptr<const ExternalData::Mapping>> ExternalData::Open(
    const std::string& location) {
  if (const auto open = files_.find(location); open != files_.end()) return open->second;
  HONE_ASSIGN_OR_RETURN(const fs::path path, Resolve(folder_, location));
  // Without O_NONBLOCK, a pipe would block.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path.string()));
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat info;
  if (::fstat(file, &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot read ", path.string()));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has its elements in '", location, "', which is not a file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      return ErrnoStatus(errno, absl::StrCat("cannot map ", path.string()));
    }
  }
  return files_[location] = std::make_shared<const Mapping>(data, size);
}

absl::StatusOr<graph::ConstantData> ExternalData::Map(const ExternalRange& range) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const Mapping> mapping, Open(range.location));
  const int64_t size = static_cast<int64_t>(mapping->size);
  if (range.offset < 0 || range.offset > size || range.length > size - range.offset) {
    return absl::InvalidArgumentError(absl::StrCat("needs ", range.length, " bytes from byte ",
                                                   range.offset, " of the file '", range.location,
                                                   "', which has ", size, " bytes"));
  }
  const char* const begin = static_cast<const char*>(mapping->data) + range.offset;
  return graph::ConstantData(mapping, absl::string_view(begin, static_cast<size_t>(range.length)));
}

}  // namespace hone::onnx
