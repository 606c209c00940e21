#include "common/schedule/replay.h"

// What is legal at a site, asked in few guards: which row a choice takes is left open until the
// program depends on it.
namespace hone::schedule {

bool Site::IsLegal(absl::Span<const int64_t> values) const {
  if (static_cast<int>(values.size()) != count) return false;
  if (kind == Kind::kChoice) {
    // One number per row, of digits in a base that is larger than any.
    std::vector<int64_t> least(rows.begin(), rows.begin() + count), most = least;
    for (size_t at = 0; at < rows.size(); ++at) {
      least[at % count] = std::min(least[at % count], rows[at]);
      most[at % count] = std::max(most[at % count], rows[at]);
    }
    int64_t code = 0;
    for (int i = 0; i < count; ++i) {
      if (values[i] < least[i] || values[i] > most[i]) return false;
      code = code * (most[i] - least[i] + 1) + (values[i] - least[i]);
    }
    std::vector<decltype(int64_t().recorded_value())> codes;
    for (size_t row = 0; row + count <= rows.size(); row += count) {
      int64_t of_row = 0;
      for (int i = 0; i < count; ++i)
        of_row = of_row * (most[i] - least[i] + 1) + (rows[row + i] - least[i]);
      codes.push_back(of_row.recorded_value());
    }
    return int64_t::IsIn(code, std::move(codes)) == 1;
  }
  int64_t inner = 1;
  for (int i = count - 1; i >= 0; --i) {
    if (values[i] < 1 || values[i] > extent || (i > 0 && inner > extent / values[i])) return false;
    if (i > 0) inner *= values[i];
  }
  if (max_inner > 0 && count > 1 && values[count - 1] > max_inner) return false;
  if (kind == Kind::kPerfectTile) return extent % inner == 0 && values[0] == extent / inner;
  return values[0] == ir::CeilDivInt(extent, inner);
}

// Recorded replays are of given decisions.
void Site::Sample(Rng&, absl::Span<int64_t>) const {}

}  // namespace hone::schedule
