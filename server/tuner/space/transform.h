#ifndef HONE_SERVER_TUNER_SPACE_TRANSFORM_H_
#define HONE_SERVER_TUNER_SPACE_TRANSFORM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::space {

// A small linear map along two axes of a tile, applied one axis after the other, such as Winograd's
// transforms of inputs and outputs:
//   gathered   the tile, with its padding (not always a separate block)
//   first      along one axis: chooses a row of the map by the position on its axis
//   last       along the other axis, reading `first` at every position of that axis
// It is recognized by the choices in the expressions; names do not matter.
struct Transform {
  // A short axis of `last`: a whole iteration variable, or its position within pieces of `divisor`.
  struct Short {
    int iter = -1;  // position in the iters of `last`
    int64_t divisor = 0;
  };
  ir::NodeId last = ir::kNoNode, first = ir::kNoNode, gathered = ir::kNoNode;
  Short across, along;  // axes of `last` along which `first` and `last` apply the map
  int vector = -1;      // position in the iters of `last`; contiguous in all reads
  int chosen = -1;      // dimension of the output of `first` along which `first` applies the map
  int contracted = -1;  // dimension of the output of `first` that `last` reads at all positions
  // Dimensions of the output of `gathered` that `first` reads at all positions.
  std::vector<int> tile;
};

// Returns nullopt if `last` does not end a transform.
std::optional<Transform> FindTransform(const ir::Program& program, ir::NodeId last);

// Writes the schedule of a transform to a trace: short axes unrolled, one vector of channels at a
// time in registers.
//   … tiles | channels | (contracted: gathered; chosen: first) | across | along | lanes
class TransformSchedule {
 public:
  struct Blocks {
    schedule::Operand last, first, gathered;  // `gathered` only if there is such a block
  };

  // Splits and places the loops. `above` is the number of loops around `last` that are not its own,
  // if it was moved into another nest. REQUIRES: `program` is as it was when the transform was
  // found, and none of its blocks has been scheduled since.
  TransformSchedule(schedule::TraceBuilder& trace, const ir::Program& program,
                    const Transform& transform, const Blocks& blocks, int64_t lanes, int above = 0);

  // The loops over tiles, outermost first; still serial.
  const std::vector<schedule::Operand>& tiles() const { return tiles_; }
  // The loop over vectors of channels, inside them; serial.
  const schedule::Operand& vectors() const { return channels_; }
  // Unrolls and vectorizes. REQUIRES: nothing is moved afterwards.
  void SetKinds(schedule::TraceBuilder& trace) const;

 private:
  std::vector<schedule::Operand> tiles_, vectorized_, unrolled_;
  schedule::Operand channels_;
};

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_TRANSFORM_H_
