#include "client/cli/npy_argument.h"

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/lib/npy.h"
#include "common/base/file.h"

namespace hone::cli {

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

absl::Status WriteNpyResult(const std::string& path, ir::DType dtype, const ir::Shape& shape,
                            absl::string_view elements) {
  return WithExitCode(
      WriteFileAtomically(path, absl::StrCat(client::NpyHeader(dtype, shape), elements)),
      kExitFailed);
}

}  // namespace hone::cli
