#ifndef HONE_COMMON_BASE_SECONDS_TEXT_H_
#define HONE_COMMON_BASE_SECONDS_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace hone {

// A duration in a text for users, as "30 s" or "0.5 s".
inline std::string SecondsText(absl::Duration duration) {
  // StrCat writes a double of a million or more with an exponent.
  const int64_t whole = absl::ToInt64Seconds(duration);
  if (duration == absl::Seconds(whole)) return absl::StrCat(whole, " s");
  return absl::StrCat(absl::ToDoubleSeconds(duration), " s");
}

}  // namespace hone

#endif  // HONE_COMMON_BASE_SECONDS_TEXT_H_
