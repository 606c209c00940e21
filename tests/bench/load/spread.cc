#include "tests/bench/load/spread.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hone::load {
namespace {

constexpr double kStep = 1.05;

}  // namespace

void Spread::Add(absl::Duration duration) {
  const double us = std::max(absl::ToDoubleMicroseconds(duration), 1.0);
  const int index = std::min(static_cast<int>(std::log(us) / std::log(kStep)), kClasses - 1);
  counts_[index].fetch_add(1, std::memory_order_relaxed);
}

void Spread::Add(const Spread& other) {
  for (int i = 0; i < kClasses; ++i) counts_[i] += other.counts_[i].load();
}

int64_t Spread::count() const {
  int64_t count = 0;
  for (const auto& in_class : counts_) count += in_class;
  return count;
}

double Spread::QuantileMs(double q) const {
  const auto wanted = static_cast<int64_t>(std::ceil(q * static_cast<double>(count())));
  int64_t seen = 0;
  for (int i = 0; i < kClasses; ++i) {
    seen += counts_[i];
    if (seen > 0 && seen >= wanted) return std::pow(kStep, i + 1) / 1000;
  }
  return 0;
}

std::string Spread::Encode() const {
  std::string text;
  for (int i = 0; i < kClasses; ++i) {
    if (counts_[i] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", i, ":", counts_[i].load());
  }
  return text;
}

absl::StatusOr<Spread> Spread::Decode(absl::string_view text) {
  Spread spread;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, ':');
    int index = 0;
    int64_t count = 0;
    if (!absl::SimpleAtoi(parts.first, &index) || !absl::SimpleAtoi(parts.second, &count) ||
        index < 0 || index >= kClasses) {
      return absl::InvalidArgumentError(absl::StrCat("not a class and its count: ", word));
    }
    spread.counts_[index] += count;
  }
  return spread;
}

}  // namespace hone::load
