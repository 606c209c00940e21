#include "server/tuner/space/tile_constraints.h"

#include <algorithm>

namespace hone::space {
namespace {

using Decisions = absl::Span<const int64_t>;

int64_t Outer(Decisions d, const Tile& tile) { return tile.sampled() ? d[tile.outer] : 1; }
int64_t Inner(Decisions d, const Tile& tile) { return tile.sampled() ? d[tile.outer + 1] : 1; }

}  // namespace

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
