#ifndef HONE_COMMON_BASE_DEFLATE_H_
#define HONE_COMMON_BASE_DEFLATE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// Compresses bytes in the format of zlib (RFC 1950), with its fastest level. Returns "" if there is
// no memory for it.
std::string Deflate(absl::string_view bytes);

// Returns the bytes that Deflate has compressed. DataLoss: they are damaged, or longer than `most`;
// no more memory than that is used.
absl::StatusOr<std::string> Inflate(absl::string_view deflated, size_t most);

}  // namespace hone

#endif  // HONE_COMMON_BASE_DEFLATE_H_
