#include "client/cli/npy_argument.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/lib/npy.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

// Whether WriteFileAtomically can replace the file: it writes a temporary file beside it.
absl::Status CheckWritable(const std::string& name) {
  const auto [path, is_special] = FindFileToWrite(name);
  if (is_special) {
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus()
                                           : ErrnoStatus(errno, absl::StrCat("write ", path));
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it is a folder"));
  }
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  close(fd);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadNpyArgument(const std::string& path, absl::string_view name,
                                            ir::DType dtype, const ir::Shape& shape,
                                            int64_t bound) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return absl::InvalidArgumentError(bytes.status().message());
  const absl::StatusOr<client::NpyArray> array = client::ParseNpy(*bytes);
  if (!array.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", array.status().message()));
  }
  absl::Status fits = client::CheckNpy(*array, dtype, shape);
  if (fits.ok() && bound > 0) fits = client::CheckBelow(*array, dtype, bound);
  if (!fits.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ", the ", name, ": ", fits.message()));
  }
  if (ir::IsPacked(dtype)) {
    absl::StatusOr<std::string> packed = client::PackNpy(*array, dtype);
    if (packed.ok()) return packed;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ", the ", name, ": ", packed.status().message()));
  }
  bytes->erase(0, bytes->size() - array->data.size());
  return bytes;
}

absl::Status CheckNpyResults(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    HONE_RETURN_IF_ERROR(WithExitCode(CheckWritable(path), kExitFailed));
  }
  return absl::OkStatus();
}

absl::Status WriteNpyResult(const std::string& path, ir::DType dtype, const ir::Shape& shape,
                            absl::string_view elements) {
  return WithExitCode(
      WriteFileAtomically(path, absl::StrCat(client::NpyHeader(dtype, shape), elements)),
      kExitFailed);
}

}  // namespace hone::cli
