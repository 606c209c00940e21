#ifndef HONE_SERVER_SPACE_SKETCH_EDITOR_H_
#define HONE_SERVER_SPACE_SKETCH_EDITOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/space/rule.h"

namespace hone::space {

// The block of a nest in a program of its sketch.
struct NestBlock {
  ir::Program program;
  ir::NodeId id = ir::kNoNode;
  TileLimits limits;  // for the dtype of the block's first output

  const ir::Block& block() const { return program.BlockOf(id); }
  const ir::Buffer& output() const { return program.buffers[block().outputs[0]]; }
};

// Returns the block of a nest in state `state`; nullopt if the nest is in another state or has been
// inlined.
std::optional<NestBlock> FindNestBlock(const RuleContext& context, const Sketch& sketch, int nest,
                                       Nest::State state = Nest::State::kOpen);

// The open blocks of a sketch, in its program.
std::vector<ir::NodeId> OpenBlocks(const Sketch& sketch, const ir::Program& program);

// Writes loop transformations to the trace of a sketch. Each function adds one instruction.
class SketchEditor {
 public:
  using Operand = schedule::Operand;
  using Operands = std::vector<Operand>;

  explicit SketchEditor(Sketch& sketch) : sketch_(sketch) {}

  // Returns the results, as many as the primitive says or `results`.
  Operands Add(absl::string_view primitive, Operands operands,
               std::vector<schedule::Attribute> attributes = {}, int results = -1);
  // The loops around a block, outermost first.
  Operands Loops(const Operand& block, size_t count);
  // A decision between numbers.
  Operand Sample(std::vector<int64_t> candidates);
  // The outer loop and the loops of the given sizes.
  Operands Split(const Operand& loop, const Operands& inner);
  // Splits a loop by a decision between two sizes, made by the primitive `sampling`. Returns the
  // outer loop, the inner loop and the outer loop's size.
  struct Tiles {
    Operand outer, inner, size;
  };
  Tiles SplitInTwo(absl::string_view sampling, const Operand& loop);
  // The only loop, or all loops fused.
  Operand Fuse(const Operands& loops);

 private:
  Sketch& sketch_;
};

inline void Append(std::vector<schedule::Operand>& to, const std::vector<schedule::Operand>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_SKETCH_EDITOR_H_
