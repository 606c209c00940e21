#ifndef HONE_SERVER_TUNER_SPACE_CONTRACTION_H_
#define HONE_SERVER_TUNER_SPACE_CONTRACTION_H_

#include <optional>
#include <vector>

#include "common/ir/program.h"

namespace hone::space {

// Returns the dimension whose index is the variable. Returns -1 if no index is, or if another index
// depends on the variable.
int DimensionOf(const ir::AtomTable& atoms, const ir::IndexList& indices, ir::AtomId var);

// A tensor that a contraction reads.
struct ContractionOperand {
  ir::BufferId buffer = -1;
  // The dimension that the operand's tile axis alone indexes: the row axis for the row operand, the
  // vector axis for the vector operand. An operand can only be packed into panels along such a
  // dimension. -1: no dimension is indexed in this way, the axis also occurs in another index, or
  // the block loads the buffer more than once.
  int panel_dimension = -1;
  // For each dimension, whether its index varies with a reduction of the block.
  std::vector<bool> reduces;
};

// A reduction block viewed as a matrix product: accumulators of rows × vectors stay in registers
// while the reductions run. Axes are positions in the block's iters.
struct Contraction {
  int vector = -1;  // spatial: the output is contiguous along it
  int row = -1;     // spatial: the vector operand does not depend on it, so its vectors are reused
  int reduce = -1;  // the innermost reduction: contiguous in the row operand if one is
  std::vector<int> shared;    // other spatial axes that the vector operand depends on (a batch)
  std::vector<int> row_like;  // other spatial axes that it does not depend on (image, height)
  std::vector<int> windows;   // other reductions, in the block's order
  ContractionOperand row_operand, vector_operand;
  // Whether the vector operand is contiguous along the vector axis, as the output is. It then need
  // not be packed.
  bool vector_contiguous = true;
};

// Returns nullopt unless the block reduces into one tensor, which it indexes by its spatial axes,
// has no load at a computed index, and has both operands: a vector operand, which depends on the
// vector axis but not on some other spatial axis, and a row operand, which depends on that other
// axis.
std::optional<Contraction> AnalyzeContraction(const ir::Program& program, ir::NodeId block);

// Whether the row operand is an image that the block reads through a window, with channels last,
// and the guards only keep the window inside the image. Copies of the window can then contain the
// padding. False for short floats, because a copy with guards is a sum, which needs a wide
// accumulator.
bool HasPaddedWindow(const ir::Program& program, ir::NodeId block, const Contraction& contraction);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_CONTRACTION_H_
