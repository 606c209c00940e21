#include <algorithm>
#include <vector>

#include "common/schedule/replay.h"

namespace hone::schedule {
namespace {

std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace

int64_t Site::RowOf(absl::Span<const int64_t> values) const {
  int64_t row = 0;
  while (row < RowCount() &&
         !std::equal(values.begin(), values.end(), rows.begin() + row * count)) {
    ++row;
  }
  return row;
}

bool Site::IsLegal(absl::Span<const int64_t> values) const {
  if (static_cast<int>(values.size()) != count) return false;
  if (kind == Kind::kChoice) return RowOf(values) < RowCount();
  int64_t inner = 1;
  for (int i = count - 1; i >= 0; --i) {
    if (values[i] < 1 || values[i] > extent || (i > 0 && inner > extent / values[i])) return false;
    if (i > 0) inner *= values[i];
  }
  if (max_inner > 0 && count > 1 && values[count - 1] > max_inner) return false;
  if (kind == Kind::kPerfectTile) return extent % inner == 0 && values[0] == extent / inner;
  return values[0] == ir::CeilDivInt(extent, inner);
}

void Site::Sample(Rng& rng, absl::Span<int64_t> values) const {
  if (kind == Kind::kChoice) {
    const size_t row = rng.Below(RowCount());
    std::copy_n(rows.begin() + row * count, count, values.begin());
    return;
  }
  int64_t rest = extent;
  int64_t inner = 1;
  for (int i = count - 1; i > 0; --i) {
    int64_t limit = kind == Kind::kPerfectTile ? rest : extent / inner;
    if (i == count - 1 && max_inner > 0) limit = std::min(limit, max_inner);
    if (kind == Kind::kPerfectTile) {
      std::vector<int64_t> divisors = Divisors(rest);
      while (divisors.back() > limit) divisors.pop_back();
      values[i] = divisors[rng.Below(divisors.size())];
      rest /= values[i];
    } else {
      // Log-uniform over the sizes. Half of the time, round to a size that leaves no remainder
      // tile.
      int bits = 0;
      while ((int64_t{2} << bits) <= limit) ++bits;
      const int64_t low = int64_t{1} << rng.Below(bits + 1);
      const int64_t high = std::min(limit, 2 * low - 1);
      values[i] = low + static_cast<int64_t>(rng.Below(high - low + 1));
      if (rng.Below(2) == 0) {
        const int64_t total = ir::CeilDivInt(extent, inner);
        values[i] = std::min(limit, ir::CeilDivInt(total, ir::CeilDivInt(total, values[i])));
      }
      inner *= values[i];
    }
  }
  values[0] = kind == Kind::kPerfectTile ? rest : ir::CeilDivInt(extent, inner);
}

}  // namespace hone::schedule
