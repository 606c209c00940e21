#ifndef HONE_COMMON_BASE_COUNTED_H_
#define HONE_COMMON_BASE_COUNTED_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hone {

// A number with its noun, whose plural ends in s: "1 trial", "2 trials". `noun` is the singular.
inline std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace hone

#endif  // HONE_COMMON_BASE_COUNTED_H_
