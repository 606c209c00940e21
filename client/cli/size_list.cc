#include "client/cli/size_list.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr absl::string_view kRangeDots = "..";

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value > 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a positive number; sizes are given as in 1,4,8 or 1..64"));
}

}  // namespace

bool NamesSeveralSizes(absl::string_view text) {
  return absl::StrContains(text, ',') || absl::StrContains(text, kRangeDots);
}

absl::StatusOr<std::vector<int64_t>> ParseSizeList(absl::string_view text) {
  std::set<int64_t> values;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const size_t dots = item.find(kRangeDots);
    if (dots == absl::string_view::npos) {
      HONE_ASSIGN_OR_RETURN(const int64_t value, ParseSize(item));
      values.insert(value);
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const int64_t first, ParseSize(item.substr(0, dots)));
    HONE_ASSIGN_OR_RETURN(const int64_t last, ParseSize(item.substr(dots + kRangeDots.size())));
    if (first > last) {
      return absl::InvalidArgumentError(
          absl::StrCat("the range ", item, " is empty; give the smaller value first"));
    }
    values.insert({first, last});
    for (int64_t power = 1; power < last; power *= 2) {
      if (power > first) values.insert(power);
      if (power > std::numeric_limits<int64_t>::max() / 2) break;
    }
  }
  return std::vector<int64_t>(values.begin(), values.end());
}

absl::Status CheckSizeCount(absl::Span<const NamedSizes> dimensions) {
  size_t count = 1;
  for (const NamedSizes& each : dimensions) count *= std::min(each.values.size(), kMostSizes + 1);
  if (count <= kMostSizes) return absl::OkStatus();
  const std::string what =
      absl::StrJoin(dimensions, " times ", [](std::string* text, const NamedSizes& each) {
        absl::StrAppend(text, each.values.size(), " values of ", each.name);
      });
  const NamedSizes& first = dimensions[0];
  return absl::InvalidArgumentError(
      absl::StrCat(what, " are given, and at most ", kMostSizes,
                   dimensions.size() > 1 ? " combinations" : " sizes",
                   " can be tuned together; give fewer values, as in ", first.name, "=",
                   first.values.front(), ",", first.values.back()));
}

}  // namespace hone::cli
