#ifndef HONE_SERVER_SPACE_TRANSFORM_H_
#define HONE_SERVER_SPACE_TRANSFORM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::space {

// A small linear map along two axes, applied one axis after the other to a tile at a time, as
// Winograd's transforms of inputs and outputs are:
//   gathered   the tile, with its padding (not always a block of its own)
//   first      along one axis: chooses a row of the map by the place on its axis
//   last       along the other one, reading `first` at every place of that axis
// Found by the choices in the expressions; names do not matter.
struct Transform {
  // A short axis of `last`: a whole iteration variable, or its place within pieces of `divisor`.
  struct Short {
    int iter = -1;  // position in the iters of `last`
    int64_t divisor = 0;
  };
  ir::NodeId last = ir::kNoNode, first = ir::kNoNode, gathered = ir::kNoNode;
  Short across, along;    // of `last`: the axis along which `first` maps, and its own
  int vector = -1;        // position in the iters of `last`: contiguous in all that is read
  int chosen = -1;        // dimensions of what `first` writes: the place on its axis,
  int contracted = -1;    // and the axis that `last` reads at all places
  std::vector<int> tile;  // dimensions of what `gathered` writes that `first` reads at all places
};

// Nothing when `last` is not the end of one.
std::optional<Transform> FindTransform(const ir::Program& program, ir::NodeId last);

// Writes the schedule of a transform to a trace: short axes unrolled, a vector of channels at a
// time in registers.
//   … tiles | channels | (contracted: gathered; chosen: first) | across | along | lanes
class TransformSchedule {
 public:
  struct Blocks {
    schedule::Operand last, first, gathered;  // the last one where there is such a block
  };

  // Cuts and places the loops. `above`: loops around `last` that are not its own, since it was
  // computed at one of them. REQUIRES `program` as it was when the transform was found, and none of
  // its blocks scheduled since.
  TransformSchedule(schedule::TraceBuilder& trace, const ir::Program& program,
                    const Transform& transform, const Blocks& blocks, int64_t lanes, int above = 0);

  // The loops over tiles, outermost first; serial so far.
  const std::vector<schedule::Operand>& tiles() const { return tiles_; }
  // Unrolls and vectorizes, once nothing is moved any more.
  void SetKinds(schedule::TraceBuilder& trace) const;

 private:
  std::vector<schedule::Operand> tiles_, vectorized_, unrolled_;
};

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_TRANSFORM_H_
