#ifndef HONE_SERVER_TUNER_SPACE_BLOCK_KIND_H_
#define HONE_SERVER_TUNER_SPACE_BLOCK_KIND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::space {

// The spatial and the reduction axes of a block, as positions in its iters.
struct BlockAxes {
  std::vector<int> spatial, reduce;
};
BlockAxes AxesOf(const ir::Block& block);

// Returns the number of iterations of these axes together.
int64_t PointsOf(const ir::Block& block, absl::Span<const int> axes);

// Returns the axis that an index equals; -1 if it is another expression.
int AxisOf(const ir::Block& block, const ir::Index& index);

// Whether an index varies with a reduction of the block.
bool VariesWithReduction(const ir::Program& program, const ir::Block& block,
                         const ir::Index& index);

// Returns the block whose result this block consumes element by element: this block reads only one
// computed tensor, indexed by all of its own iteration variables. kNoNode if there is none, if
// another block also reads that tensor, or if this block computes guarded values, which are not
// moved to a producer. `transposes`: the variables may index the tensor in any order.
ir::NodeId ElementwiseProducer(const ir::Program& program, ir::NodeId block,
                               bool transposes = false);

// Whether a block copies single elements. It may reduce over one point, because a guard needs a
// reduction. (A product of one channel also reduces over one point, but reads two elements.)
bool CopiesElements(const ir::Program& program, const ir::Block& block);

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

// A reduction whose operands are all contiguous along the result's last axis: unlike in a
// contraction, no element is used for several results, except through a sliding window. Axes are
// positions in the block's iters.
struct Window {
  int vector = -1;
  // Whether the window slides along the vectors, as over an image with channels first. The other
  // operands, the weights of a channel, do not depend on the vector axis.
  bool slides_along_vectors = false;
  std::vector<int> outer;       // spatial axes that are not tiled
  int height = -1, width = -1;  // tiled axes; -1: none
  std::vector<int> taps;
};

// Returns nullopt if the block is not such a reduction.
std::optional<Window> AnalyzeWindow(const ir::Program& program, const ir::Block& block);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_BLOCK_KIND_H_
