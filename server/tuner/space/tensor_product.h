#ifndef HONE_SERVER_TUNER_SPACE_TENSOR_PRODUCT_H_
#define HONE_SERVER_TUNER_SPACE_TENSOR_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "common/ir/intrinsic.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "server/tuner/space/block_kind.h"

namespace hone::space {

// An instruction of common/ir/intrinsic.h that computes blocks of a contraction's result:
// rows × columns sums of `terms` products, in one vector or in a tile register.
struct TensorProduct {
  const ir::Intrinsic* instruction = nullptr;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t terms = 1;
  int64_t group = 1;  // terms of a column that are adjacent in the vector operand
  bool is_tile() const { return instruction->shape == ir::Intrinsic::Shape::kTile; }
  // Whether the rows of a block must be adjacent in memory.
  bool joins_rows() const { return rows > 1 && !is_tile(); }
};

// Returns the target's instructions that can compute a contraction: the block multiplies one
// element of each operand, both converted to the type of the sum; the types are those of the
// instruction; the row, vector and reduction axes are multiples of its extents, or little is added
// when they are rounded up; the vector operand can be packed; the row operand, too, or the
// instruction reads it in place, which one that joins rows cannot. Of several that differ only in
// the length of the vector or in the rows of a tile, returns the best.
std::vector<TensorProduct> TensorProductsFor(const target::Target& target,
                                             const ir::Program& program, ir::NodeId id,
                                             const Contraction& contraction);

// Returns the dimension of an operand that the reduction axis alone indexes, as DimensionOf does.
// REQUIRES: the block loads the operand once.
int ReducedDimension(const ir::Program& program, const ir::Block& block,
                     const ContractionOperand& operand, int reduce);

// Whether an operand is contiguous along the reduction axis, as a channels-last image is along its
// channels, and any image along the taps of its last dimension.
// REQUIRES: the block loads the operand once.
bool ReadsInPlace(const ir::Program& program, const ir::Block& block,
                  const ContractionOperand& operand, int reduce);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_TENSOR_PRODUCT_H_
