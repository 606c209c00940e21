#include "server/tuner/space/tile_limits.h"

#include <algorithm>

#include "absl/algorithm/container.h"
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

using Decisions = absl::Span<const int64_t>;

int64_t Outer(Decisions d, const Tile& tile) { return tile.sampled() ? d[tile.outer] : 1; }
int64_t Inner(Decisions d, const Tile& tile) { return tile.sampled() ? d[tile.outer + 1] : 1; }

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
    return rows <= row_extent &&
           rows * vectors + limits.registers_per_operand * (vectors + 1) <= limits.vector_registers;
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
  const bool known = absl::c_linear_search(candidates, extent);
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

void AddTileConstraints(const TileLimits& limits, const TileDecisions& at, const TileShape& shape,
                        std::vector<Constraint>& constraints) {
  constraints.push_back({"parallel", at.row.outer + 2, [=](Decisions d) {
                           int64_t iterations = Outer(d, at.vector) * Outer(d, at.row);
                           int64_t tiles = iterations * Inner(d, at.vector) * Inner(d, at.row);
                           for (const Tile& other : at.others) {
                             iterations *= Outer(d, other);
                             tiles *= Outer(d, other) * Inner(d, other);
                           }
                           return iterations >= std::min(limits.cores, tiles);
                         }});
  if (at.reduce.sampled()) {
    constraints.push_back({"whole reduction", at.reduce.outer + 2, [=](Decisions d) {
                             int64_t inner = Inner(d, at.row) * Inner(d, at.vector);
                             for (const Tile& other : at.others) inner *= Inner(d, other);
                             const int64_t tiles = Outer(d, at.reduce);
                             const int64_t depth =
                                 tiles * Inner(d, at.reduce) * d[at.k_unroll] * at.window_points;
                             const int64_t wide = d[at.rows] + d[at.vectors] * shape.lanes;
                             return inner > 1 || tiles == 1 || depth <= limits.short_reduction ||
                                    wide * depth * shape.element_bytes > limits.panel_bytes;
                           }});
  }
  AddCacheConstraints(limits, at, shape, constraints);
}

void AddCacheConstraints(const TileLimits& limits, const TileDecisions& at, const TileShape& shape,
                         std::vector<Constraint>& constraints) {
  const int64_t statements = at.short_steps ? limits.short_statements
                             : at.guarded   ? limits.guarded_statements
                                            : limits.unrolled_statements;
  constraints.push_back(
      {"statements", std::max({at.rows, at.vectors, at.k_unroll}) + 1, [=](Decisions d) {
         return d[at.k_unroll] == 1 || d[at.rows] * d[at.vectors] * d[at.k_unroll] <= statements;
       }});
  if (at.window_unroll >= 0) {
    constraints.push_back({"statements of the window", at.window_unroll + 1, [=](Decisions d) {
                             const int64_t body = d[at.rows] * d[at.vectors] * d[at.k_unroll];
                             return d[at.window_unroll] == 1 ||
                                    body * d[at.window_unroll] <= statements;
                           }});
  }
  if (!at.reduce.sampled()) return;
  const auto depth = [=](Decisions d) {
    return Inner(d, at.reduce) * d[at.k_unroll] * at.window_points;
  };
  if (at.reduction > 0 && at.reduction <= limits.short_reduction) {
    constraints.push_back({"short reduction", at.reduce.outer + 2, [=](Decisions d) {
                             const int64_t tiles = Outer(d, at.reduce);
                             return tiles == 1 ||
                                    tiles * Inner(d, at.reduce) * d[at.k_unroll] == at.reduction;
                           }});
  }
  constraints.push_back({"panels", at.reduce.outer + 2, [=](Decisions d) {
                           const int64_t wide = d[at.rows] + d[at.vectors] * shape.lanes;
                           return Inner(d, at.reduce) == 1 ||
                                  wide * depth(d) * shape.element_bytes <= limits.panel_bytes;
                         }});
  constraints.push_back({"block", at.reduce.outer + 2, [=](Decisions d) {
                           int64_t row_tiles = Inner(d, at.row);
                           for (const Tile& other : at.others) row_tiles *= Inner(d, other);
                           const int64_t vector_tiles = Inner(d, at.vector);
                           const int64_t again = shape.row_first ? row_tiles : vector_tiles;
                           if (again == 1 || Inner(d, at.reduce) == 1) return true;
                           const int64_t elements =
                               shape.row_first
                                   ? vector_tiles * d[at.vectors] * shape.lanes * depth(d)
                                   : row_tiles * d[at.rows] * Inner(d, at.reduce) * d[at.k_unroll];
                           return elements * shape.element_bytes <= limits.block_bytes;
                         }});
}

}  // namespace hone::space
