#ifndef HONE_COMMON_IR_REGION_H_
#define HONE_COMMON_IR_REGION_H_

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

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_REGION_H_
