#include "common/lower/index_values.h"

#include <algorithm>

namespace hone::lower {

using ir::Index;
using ir::Range;

namespace {

using Values = std::vector<int64_t>;

constexpr int64_t kMaxSums = 1 << 14;

// Returns the values factor · a + b. Returns nullopt if there are too many.
std::optional<Values> Sums(const Values& a, int64_t factor, const Values& b) {
  if (static_cast<int64_t>(a.size() * b.size()) > kMaxSums) return std::nullopt;
  Values sums;
  sums.reserve(a.size() * b.size());
  for (const int64_t x : a) {
    for (const int64_t y : b) sums.push_back(factor * x + y);
  }
  std::sort(sums.begin(), sums.end());
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  return sums;
}

}  // namespace

bool IndexValues::Contains(const Index& index, const Index& known, int64_t& factor, Index& rest) {
  if (known.IsConstant()) return false;
  const ir::IndexTerm& first = known.terms()[0];
  const int64_t coeff = index.CoeffOf(first.atom);
  if (coeff == 0 || coeff % first.coeff != 0) return false;
  factor = coeff / first.coeff;
  rest = index;
  rest.AddScaled(known, -factor);
  return std::all_of(known.terms().begin(), known.terms().end(),
                     [&](const ir::IndexTerm& term) { return rest.CoeffOf(term.atom) == 0; });
}

Range IndexValues::RangeOf(const Index& index) const {
  Range range = atoms_.RangeOf(index);
  for (const Known& known : known_) {
    int64_t factor;
    Index rest;
    if (!Contains(index, known.index, factor, rest)) continue;
    const Range all = atoms_.RangeOf(known.index), other = atoms_.RangeOf(rest);
    const Range part{std::max(all.min, known.range.min), std::min(all.max, known.range.max)};
    if (part.min > part.max) return part;
    range.min = std::max(range.min, other.min + factor * (factor > 0 ? part.min : part.max));
    range.max = std::min(range.max, other.max + factor * (factor > 0 ? part.max : part.min));
  }
  return range;
}

std::optional<Values> IndexValues::Enumerate(const Index& index) const {
  std::optional<Values> values = Values{index.constant()};
  for (const ir::IndexTerm& term : index.terms()) {
    const Range range = atoms_.RangeOf(Index::Of(term.atom));
    if (range.extent() > kMaxSums) return std::nullopt;
    Values steps;
    for (int64_t step = range.min; step <= range.max; ++step) steps.push_back(step);
    values = Sums(steps, term.coeff, *values);
    if (!values.has_value()) return std::nullopt;
  }
  return values;
}

std::optional<Values> IndexValues::Of(const Index& index) const {
  std::optional<Values> values = Enumerate(index);
  for (const Known& known : known_) {
    int64_t factor;
    Index rest;
    if (!Contains(index, known.index, factor, rest)) continue;
    std::optional<Values> part = Enumerate(known.index), other = Enumerate(rest);
    if (!part.has_value() || !other.has_value()) continue;
    std::erase_if(*part, [&](int64_t v) { return v < known.range.min || v > known.range.max; });
    const std::optional<Values> sums = Sums(*part, factor, *other);
    if (!sums.has_value()) continue;
    if (!values.has_value()) {
      values = sums;
      continue;
    }
    Values both;
    std::set_intersection(values->begin(), values->end(), sums->begin(), sums->end(),
                          std::back_inserter(both));
    values = std::move(both);
  }
  return values;
}

}  // namespace hone::lower
