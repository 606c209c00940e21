#include "common/record/counters.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hone::record {
namespace {

constexpr absl::string_view kMissing = "? ";

bool IsCounterName(absl::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
}

}  // namespace

std::string CountersText(absl::Span<const Counter> counters) {
  std::string text;
  std::vector<std::pair<absl::string_view, std::string>> missing;  // reason → names
  for (const Counter& counter : counters) {
    if (counter.missing.empty()) {
      absl::StrAppend(&text, counter.name, " ", counter.value, "\n");
      continue;
    }
    if (missing.empty() || missing.back().first != counter.missing) {
      missing.emplace_back(counter.missing, counter.name);
    } else {
      absl::StrAppend(&missing.back().second, ",", counter.name);
    }
  }
  for (const auto& [reason, names] : missing) {
    absl::StrAppend(&text, names, " ", kMissing, reason, "\n");
  }
  return text;
}

std::vector<Counter> ParseCounters(absl::string_view text) {
  std::vector<Counter> counters;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    absl::string_view value = parts.second;
    if (absl::ConsumePrefix(&value, kMissing)) {
      for (const absl::string_view name : absl::StrSplit(parts.first, ',')) {
        if (IsCounterName(name) && !value.empty())
          counters.push_back({.name = std::string(name), .missing = std::string(value)});
      }
      continue;
    }
    Counter counter{.name = std::string(parts.first)};
    const bool number = absl::SimpleAtod(value, &counter.value);
    if (!number || !std::isfinite(counter.value) || counter.value < 0) continue;
    if (IsCounterName(counter.name)) counters.push_back(std::move(counter));
  }
  return counters;
}

}  // namespace hone::record
