#ifndef HONE_COMMON_BASE_SHA256_H_
#define HONE_COMMON_BASE_SHA256_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace hone {

// Returns the SHA-256 of bytes, as 64 lower-case hex digits. It identifies what is transferred
// between machines, such as artifacts: unlike Digest, nobody can make other bytes with the same
// value.
std::string Sha256Of(absl::string_view bytes);

// Whether the text has the form that Sha256Of returns.
inline bool IsSha256(absl::string_view text) {
  constexpr size_t kDigits = 64;
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

}  // namespace hone

#endif  // HONE_COMMON_BASE_SHA256_H_
