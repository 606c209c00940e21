#ifndef HONE_SERVER_SPACE_CONTRACTION_H_
#define HONE_SERVER_SPACE_CONTRACTION_H_

#include <optional>
#include <vector>

#include "common/ir/program.h"

namespace hone::space {

// A tensor that a contraction reads.
struct ContractionOperand {
  ir::BufferId buffer = -1;
  // The dimension whose index is exactly the tile's axis (rows of the row operand, vectors of the
  // vector operand), if the axis occurs nowhere else in the indices; only then can the operand be
  // packed into panels. Otherwise -1.
  int panel_dimension = -1;
  // Per dimension, whether a reduction variable occurs in its index.
  std::vector<bool> reduces;
};

// A reduction block viewed as a matrix product: accumulators of rows × vectors stay in registers
// while the reductions run. Axes are positions in the block's iters.
struct Contraction {
  int vector = -1;  // spatial: the output is contiguous along it
  int row = -1;     // spatial: the vector operand does not depend on it, so its vectors are reused
  int reduce = -1;  // the innermost reduction: contiguous in the row operand
  std::vector<int> shared;    // other spatial axes that the vector operand depends on (a batch)
  std::vector<int> row_like;  // other spatial axes that it does not depend on (image, height)
  std::vector<int> windows;   // other reductions, in the block's order
  ContractionOperand row_operand, vector_operand;
  bool vector_contiguous =
      true;  // whether the vector operand is also contiguous, so that it need not be packed
};

// Returns nullopt if the block does not reduce to one tensor at its own iteration variables, or has
// no vector operand: a load along the vector axis that is independent of some other spatial axis.
std::optional<Contraction> AnalyzeContraction(const ir::Program& program, ir::NodeId block);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_CONTRACTION_H_
