#ifndef HONE_SERVER_TUNER_SPACE_PANEL_COPY_H_
#define HONE_SERVER_TUNER_SPACE_PANEL_COPY_H_

#include <optional>
#include <vector>

#include "common/ir/program.h"
#include "server/tuner/space/rule.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

// One operand of a tiled contraction, packed into panels of the register tile's width. Rules use it
// for the block that they are scheduling, whose operand has a panel_dimension.
class PanelCopy {
 public:
  // `rows`: whether to copy the row operand rather than the vector operand. Reads these parts of
  // `tiling`: the contraction, the register tile and, for a copy at the tile, reduce_outer.
  PanelCopy(Sketch& sketch, const schedule::Operand& block, const Tiling& tiling,
            const ir::Program& program, const TileLimits& limits, bool rows);

  // If `at_tile`, each tile of the reduction copies its part of the operand; otherwise the whole
  // operand is copied first.
  void Run(bool at_tile);

 private:
  using Operand = schedule::Operand;

  void Layout(const Operand& copy);
  void Schedule(const std::vector<Operand>& loops, bool at_tile);
  void Transpose(const std::vector<Operand>& loops, bool at_tile);

  SketchEditor edit_;
  const Operand block_;
  const TileLimits& limits_;
  const Tiling tiling_;
  const bool rows_;
  const ContractionOperand operand_;
  const ir::Buffer buffer_;
  std::optional<Operand> writer_;  // the block that computes the operand, if there is one
  bool in_pieces_ = false;
};

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_PANEL_COPY_H_
