#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/ir/program.h"

// Whether different iterations of loops touch different places.
namespace hone::schedule {

// What is known of an index over loop variables: its value, but for an addend in [0, slack].
struct Known {
  ir::Index index;
  int64_t slack = 0;
};

// The variables whose values follow from what is known, when those that `fixed` names are known
// too: digits of a positional number (4·a + b with b < 4 gives a and b), and floordiv and mod
// digits that make up their argument. A variable that is missing may still follow by a way that
// this does not see.
std::vector<ir::AtomId> Determined(ir::Program& program, std::vector<Known> known,
                                   absl::FunctionRef<bool(ir::AtomId)> fixed);

// Whether the loops from `top` down to the block run through different iterations of it while the
// loops above `top` stand. False when that cannot be proved.
bool OneToOneUnder(ir::Program& program, ir::NodeId block, ir::NodeId top);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_
