#ifndef HONE_COMMON_IR_REGION_H_
#define HONE_COMMON_IR_REGION_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/ir/program.h"

namespace hone::ir {

// One dimension of the memory that an access touches while the inner loops run: [min, min +
// extent). `min` depends only on the outer loops' variables.
struct Interval {
  Index min;
  Extent extent;
};

// The interval of an index over loop variables. `inner` returns whether a loop is an inner one. An
// index whose floordiv or mod mixes inner and outer variables gets constant bounds. Predicates over
// inner loops only narrow the interval: 0 ≤ 3·a + b < 4 makes 4·o + 3·a + b four wide.
Interval IntervalOf(Program& program, const Index& index, absl::FunctionRef<bool(AtomId)> inner,
                    const std::vector<Condition>& predicates = {});

// The smallest interval that contains both. If the difference of their minima is not constant, the
// result has constant bounds.
Interval Union(Program& program, const Interval& a, const Interval& b);

// The region of `buffer` that the blocks under `scope` read or write, per dimension, over the loops
// around `scope` (which counts as an outer loop itself). Empty if there is no such access.
std::vector<Interval> RegionRead(Program& program, BufferId buffer, NodeId scope);
std::vector<Interval> RegionWritten(Program& program, BufferId buffer, NodeId scope);

// Returns for each input of a program's workload whether the program reads it outside of its
// prepack kernel. The other inputs are constants, of which it reads only the packed form. Inputs
// that are not constant count as read.
std::vector<bool> InputsThatRunReads(const Program& program);

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

#endif  // HONE_COMMON_IR_REGION_H_
