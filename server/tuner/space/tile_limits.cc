#include "server/tuner/space/tile_limits.h"

#include <algorithm>

#include "common/ir/index.h"

namespace hone::space {
namespace {

// Limits by vector width. The widest row that is not wider than the target applies.
struct Row {
  int vector_bits;
  int64_t accumulators;
  int64_t max_vectors;
  int64_t window_accumulators;
};
constexpr Row kRows[] = {
    {64, 8, 4, 8},
    {128, 8, 4, 8},
    {256, 8, 4, 8},
    {512, 8, 6, 16},
};

}  // namespace

TileLimits TileLimits::Of(const target::Target& target, ir::DType dtype) {
  TileLimits limits;
  for (const Row& row : kRows) {
    if (row.vector_bits > target.vector_bits) break;
    limits.accumulators = row.accumulators;
    limits.max_vectors = row.max_vectors;
    limits.window_accumulators = row.window_accumulators;
  }
  limits.lanes = std::max(1, target.vector_bits / (8 * ir::DTypeBytes(dtype)));
  limits.vector_registers = target.vector_registers;
  limits.cores = target.cores;
  limits.panel_bytes = target.l2_bytes * 3 / 4;
  limits.block_bytes = target.l2_bytes;
  return limits;
}

std::vector<int64_t> RegisterTiles(const TileLimits& limits, int64_t row_extent,
                                   int64_t vector_extent) {
  const int64_t lanes = std::min(limits.lanes, vector_extent);
  const int64_t max_vectors = std::min(limits.max_vectors, ir::CeilDivInt(vector_extent, lanes));
  const auto fits = [&](int64_t rows, int64_t vectors) {
    return rows <= row_extent && rows * vectors + vectors + 1 <= limits.vector_registers;
  };
  int64_t most = 1;
  for (int64_t vectors = 1; vectors <= max_vectors; ++vectors) {
    for (int64_t rows = 1; fits(rows, vectors); ++rows) most = std::max(most, rows * vectors);
  }
  const int64_t least = std::min(limits.accumulators, most);
  std::vector<int64_t> tiles;
  for (int64_t vectors = 1; vectors <= max_vectors; ++vectors) {
    for (int64_t rows = 1; fits(rows, vectors); ++rows) {
      if (rows * vectors >= least) tiles.insert(tiles.end(), {rows, vectors});
    }
  }
  return tiles;
}

std::vector<int64_t> KUnrolls(const TileLimits& limits, int64_t extent) {
  std::vector<int64_t> candidates;
  for (const int64_t k : limits.k_unroll) {
    if (k <= extent) candidates.push_back(k);
  }
  const bool known = std::find(candidates.begin(), candidates.end(), extent) != candidates.end();
  if (extent <= limits.whole_unroll && !known) candidates.push_back(extent);
  return candidates;
}

std::vector<int64_t> RowWidths(const TileLimits& limits, int64_t extent) {
  std::vector<int64_t> dividing, fitting;
  for (const int64_t vectors : limits.wide) {
    const int64_t width = vectors * limits.lanes;
    if (width > extent) continue;
    fitting.push_back(width);
    if (extent % width == 0) dividing.push_back(width);
  }
  if (!dividing.empty()) return dividing;
  if (fitting.empty()) fitting.push_back(extent);
  return fitting;
}

}  // namespace hone::space
