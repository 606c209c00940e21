#include "server/tuner/space/gpu/tile_size.h"

#include <cstdlib>

#include "absl/algorithm/container.h"

namespace hone::space {

absl::InlinedVector<int64_t, 6> TileBox::Extents(absl::Span<const int64_t> decided) const {
  absl::InlinedVector<int64_t, 6> extents;
  for (const Dimension& dimension : dimensions) {
    int64_t extent = 1;
    for (const auto& [coefficient, tile] : dimension.axes) {
      extent += std::abs(coefficient) * (tile.Of(decided) - 1);
    }
    extents.push_back(extent);
  }
  return extents;
}

int64_t TileBox::Elements(absl::Span<const int64_t> decided) const {
  int64_t elements = 1;
  for (const int64_t extent : Extents(decided)) elements *= extent;
  return elements;
}

std::optional<TileBox> TileBoxOf(const ir::Program& program, const ir::Block& block,
                                 const ir::Expr& load, absl::Span<const TileSize> tiles) {
  if (load.gathered >= 0) return std::nullopt;
  const ir::Buffer& buffer = program.buffers[load.buffer];
  TileBox box{.element_bytes = ir::DTypeBytes(buffer.dtype)};
  const ir::IndexList& indices = program.pool.IndicesOf(load);
  for (size_t d = 0; d < indices.size(); ++d) {
    TileBox::Dimension dimension;
    for (const ir::IndexTerm& term : indices[d].terms()) {
      const auto iter =
          absl::c_find_if(block.iters, [&](const ir::BlockIter& i) { return i.var == term.atom; });
      if (iter == block.iters.end()) return std::nullopt;
      dimension.axes.emplace_back(term.coeff, tiles[iter - block.iters.begin()]);
    }
    box.dimensions.push_back(std::move(dimension));
  }
  return box;
}

}  // namespace hone::space
