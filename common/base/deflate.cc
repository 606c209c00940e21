#include "common/base/deflate.h"

#include <zlib.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hone {
namespace {

const Bytef* BytesOf(absl::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

}  // namespace

std::string Deflate(absl::string_view bytes) {
  std::string deflated(compressBound(bytes.size()), '\0');
  uLongf size = deflated.size();
  const int done = compress2(reinterpret_cast<Bytef*>(deflated.data()), &size, BytesOf(bytes),
                             bytes.size(), Z_BEST_SPEED);
  deflated.resize(done == Z_OK ? size : 0);
  return deflated;
}

absl::StatusOr<std::string> Inflate(absl::string_view deflated, size_t most) {
  std::string bytes(most, '\0');
  uLongf size = bytes.size();
  switch (uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size, BytesOf(deflated),
                     deflated.size())) {
    case Z_OK:
      bytes.resize(size);
      return bytes;
    case Z_BUF_ERROR:
      return absl::DataLossError(
          absl::StrCat("compressed data are cut off, or have more than ", most, " bytes"));
    default:
      return absl::DataLossError("compressed data are damaged");
  }
}

}  // namespace hone
