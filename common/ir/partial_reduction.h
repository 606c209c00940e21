#ifndef HONE_COMMON_IR_PARTIAL_REDUCTION_H_
#define HONE_COMMON_IR_PARTIAL_REDUCTION_H_

#include <cstddef>
#include <vector>

#include "common/ir/program.h"

namespace hone::ir {

// The loops above a block that carry its reduction, and the other loops inside the outermost one.
struct ReducingLoops {
  std::vector<NodeId> reducing;  // outermost first
  std::vector<NodeId> inner;     // spatial loops under the outermost of them
  NodeId mixed = kNoNode;        // a loop that carries both kinds of iterations, if there is one
};
ReducingLoops ReducingLoopsOf(const Program& program, const Block& block, NodeId id);

// Whether an index depends on the variable of one of the loops.
bool DependsOnLoops(const Program& program, const Index& index, const std::vector<NodeId>& loops);
// Whether a predicate of a block depends both on loops that it reduces over and on others.
bool HasMixedPredicate(const Program& program, const Block& block,
                       const std::vector<NodeId>& reducing);

// A reduction in two steps: one block computes partial results, which have one more dimension (for
// the iterations of a loop), and another block combines them.
struct PartialReduction {
  NodeId partial = kNoNode;   // takes the place of the block
  NodeId combine = kNoNode;   // the original block, in a separate nest after the reduction
  std::vector<NodeId> loops;  // the serial loops of that nest: copies of `inner` and the loop
};

// Divides the reduction of a block over a loop. The partial results have the dimension `axis` for
// the loop's iterations.
// REQUIRES: the block reduces and has an init, no loop above is mixed, no predicate is mixed, and
// nothing else under the reduction uses its outputs.
PartialReduction DivideReduction(Program& program, NodeId block, NodeId loop, size_t axis);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_PARTIAL_REDUCTION_H_
