#include "client/cli/size_list.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr absl::string_view kRangeDots = "..";
constexpr char kWeightColon = ':';
constexpr double kMostWeight = 1e6;

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value > 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a positive number; sizes are given as in 1,4,8 or 1..64"));
}

// The weight after the colon of a size.
absl::StatusOr<double> ParseWeight(absl::string_view text) {
  double weight = 0;
  if (absl::SimpleAtod(text, &weight) && weight > 0 && weight <= kMostWeight) return weight;
  return absl::InvalidArgumentError(
      absl::StrCat("the weight '", text, "' is not a positive number of at most ", kMostWeight,
                   "; sizes have weights as in 1:3,8:1"));
}

}  // namespace

bool NamesSeveralSizes(absl::string_view text) {
  return absl::StrContains(text, ',') || absl::StrContains(text, kRangeDots) ||
         absl::StrContains(text, kWeightColon);
}

absl::StatusOr<SizeList> ParseSizeList(absl::string_view text) {
  std::map<int64_t, double> weights;
  std::set<int64_t> weighted;
  const auto add = [&](int64_t value, absl::string_view weight) -> absl::Status {
    const bool is_new = weights.emplace(value, 1).second;
    if (!is_new && (!weight.empty() || weighted.contains(value))) {
      return absl::InvalidArgumentError(
          absl::StrCat("the size ", value, " is repeated, and has a weight; give it once"));
    }
    if (weight.empty()) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(weights[value], ParseWeight(weight));
    weighted.insert(value);
    return absl::OkStatus();
  };
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(kWeightColon, 1));
    const size_t dots = parts[0].find(kRangeDots);
    if (dots == absl::string_view::npos) {
      HONE_ASSIGN_OR_RETURN(const int64_t value, ParseSize(parts[0]));
      if (parts.size() > 1) HONE_RETURN_IF_ERROR(ParseWeight(parts[1]).status());
      HONE_RETURN_IF_ERROR(add(value, parts.size() > 1 ? parts[1] : ""));
      continue;
    }
    if (parts.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the range ", parts[0], " has a weight; give each size its own, as in 1:3,8:1"));
    }
    HONE_ASSIGN_OR_RETURN(const int64_t first, ParseSize(item.substr(0, dots)));
    HONE_ASSIGN_OR_RETURN(const int64_t last, ParseSize(item.substr(dots + kRangeDots.size())));
    if (first > last) {
      return absl::InvalidArgumentError(
          absl::StrCat("the range ", item, " is empty; give the smaller value first"));
    }
    std::set<int64_t> values = {first, last};
    for (int64_t power = 1; power < last; power *= 2) {
      if (power > first) values.insert(power);
      if (power > std::numeric_limits<int64_t>::max() / 2) break;
    }
    for (const int64_t value : values) HONE_RETURN_IF_ERROR(add(value, ""));
  }
  SizeList list;
  for (const auto& [value, weight] : weights) {
    list.values.push_back(value);
    list.weights.push_back(weight);
  }
  return list;
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
