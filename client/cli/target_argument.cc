#include "client/cli/target_argument.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"

namespace hone::cli {

absl::StatusOr<std::string> TargetArgument::Key() const {
  if (IsNative()) return host.Key();
  const absl::StatusOr<target::Target> preset = target::TargetByName(given);
  if (preset.ok()) return preset->Key();
  // A key consists of parts joined by hyphens; the last part has eight hex digits.
  const size_t hyphen = given.rfind('-');
  const absl::string_view tail =
      absl::string_view(given).substr(hyphen == std::string::npos ? 0 : hyphen + 1);
  if (hyphen != std::string::npos && tail.size() == 8 &&
      std::all_of(tail.begin(), tail.end(), absl::ascii_isxdigit)) {
    return given;
  }
  const std::vector<std::string> names = target::TargetNames();
  const std::string nearest = Nearest(given, names);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown target ", given,
                   nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?"),
                   "; the names are ", absl::StrJoin(names, ", "), "; or give a key"));
}

absl::StatusOr<std::string> TargetArgument::Text() const {
  if (IsNative()) return host.ToText();
  const absl::StatusOr<target::Target> preset = target::TargetByName(given);
  return preset.ok() ? preset->ToText() : Key();
}

}  // namespace hone::cli
