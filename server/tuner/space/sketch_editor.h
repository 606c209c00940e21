#ifndef HONE_SERVER_TUNER_SPACE_SKETCH_EDITOR_H_
#define HONE_SERVER_TUNER_SPACE_SKETCH_EDITOR_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/ir/program.h"
#include "server/tuner/space/rule.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {

// The block of a nest, and a program of the sketch that contains it.
struct NestBlock {
  std::shared_ptr<const ir::Program> kept;
  const ir::Program& program = *kept;
  ir::NodeId id = ir::kNoNode;
  TileLimits limits;  // for the dtype of the block's first output

  const ir::Block& block() const { return program.BlockOf(id); }
  const ir::Buffer& output() const { return program.buffers[block().outputs[0]]; }
};

// Returns the block of the nest with index `nest`. Returns nullopt if the nest is not in the state
// `state`, if its block has been inlined, or if the sketch does not replay.
std::optional<NestBlock> FindNestBlock(const RuleContext& context, const Sketch& sketch, int nest,
                                       Nest::State state = Nest::State::kOpen);

// Returns the blocks of `program`, a program of the sketch, whose nests are open.
std::vector<ir::NodeId> OpenBlocks(const Sketch& sketch, const ir::Program& program);

// Returns the open nest that consumes a block's result element by element. Returns -1 if no such
// nest is open, or if the result is an output of the workload, which a kernel must store.
int ElementwiseConsumer(const Sketch& sketch, const ir::Program& program, ir::NodeId block);

// Returns the open nest that copies elements into a buffer for one reader, such as the patches of
// im2col. Returns -1 if no open nest does that, or if the result is an output or a constant.
int CopyNestOf(const Sketch& sketch, const ir::Program& program, ir::BufferId buffer,
               ir::NodeId reader);
// Whether a block reads the copies of such a nest.
bool ReadsCopyNest(const Sketch& sketch, const ir::Program& program, ir::NodeId block);

// Adds instructions to a trace, such as that of a sketch. The functions return the instructions'
// results.
class SketchEditor {
 public:
  using Operand = schedule::Operand;
  using Operands = std::vector<Operand>;

  explicit SketchEditor(Sketch& sketch) : trace_(sketch.trace) {}
  explicit SketchEditor(schedule::TraceBuilder& trace) : trace_(trace) {}

  // Adds any instruction. `results`: the number of its results; -1: the number that the primitive
  // defines.
  Operands Add(absl::string_view primitive, Operands operands,
               std::vector<schedule::Attribute> attributes = {}, int results = -1);
  // Returns the `count` loops around a block, outermost first.
  Operands Loops(const Operand& block, size_t count);
  // Adds a decision that chooses one of the candidates. Returns the chosen number.
  Operand Sample(std::vector<int64_t> candidates);
  // Splits a loop. Returns the outer loop and one loop of each size in `inner`.
  Operands Split(const Operand& loop, const Operands& inner);
  // Splits a loop in two, with sizes sampled by the primitive `sampling`. `size` is the size of the
  // outer loop.
  struct Tiles {
    Operand outer, inner, size;
  };
  Tiles SplitInTwo(absl::string_view sampling, const Operand& loop);
  // Fuses the loops. A single loop is returned unchanged.
  Operand Fuse(const Operands& loops);

 private:
  schedule::TraceBuilder& trace_;
};

inline void Append(std::vector<schedule::Operand>& to, const std::vector<schedule::Operand>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Vectorizes a sketch's stages along their rows, with one sampled width per row length.
// Element-wise stages and reductions have separate widths.
class RowVectors {
 public:
  // Keeps references to both.
  RowVectors(SketchEditor& edit, const TileLimits& limits) : edit_(edit), limits_(limits) {}

  // Splits the columns of a stage without a reduction into vectors.
  void Columns(const schedule::Operand& columns, int64_t extent);
  // Vectorizes the innermost loop of a reduction into partial results, which are combined in
  // halves; `lane` is the position of the combining block's innermost loop.
  void Lanes(const schedule::Operand& block, const schedule::Operand& reduction, int64_t extent,
             int lane);
  // The sampled width of a reduction's lanes.
  schedule::Operand LanesOf(int64_t extent) { return Width(extent, reductions_); }

 private:
  using Widths = std::vector<std::pair<int64_t, schedule::Operand>>;  // by row length
  schedule::Operand Width(int64_t extent, Widths& widths);

  SketchEditor& edit_;
  const TileLimits& limits_;
  Widths columns_, reductions_;
};

// A sketch in which a reduction is computed in parts, which a second nest combines:
//   for i, j, k: C[i, j] += …  →  for i, j, part, k_1: C_rf[part, i, j] += …;
//                                 for i, j, part: C[i, j] += C_rf[part, i, j]
struct SplitSum {
  Sketch sketch;  // other rules schedule the nest of the parts
  schedule::Operand combining;
  // Only `iters` is set. The extent of the reduction axis is that of the unsplit axis, because the
  // number of parts is a decision.
  ir::Block combining_block;
};

// Returns the part sizes that divide `extent` evenly into `least` to `most` parts of at least
// `least_terms` terms each.
std::vector<int64_t> PartSizes(int64_t extent, int64_t least, int64_t most, int64_t least_terms);

// Splits the reduction `axis` of a nest's block; the size of a part is a decision among `sizes`.
// `dimension` is the position of the parts' dimension in the buffer of partial results, 0 in the
// example above; -1: the last one.
SplitSum SplitReduction(const Sketch& sketch, int nest, const ir::Block& block, int axis,
                        std::vector<int64_t> sizes, int dimension);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_SKETCH_EDITOR_H_
