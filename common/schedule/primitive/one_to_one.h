#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/ir/program.h"

// Analyzes whether different iterations of loops access different places.
namespace hone::schedule {

// Says that the value of an index over loop variables is known, up to an addend in [0, slack].
struct Known {
  ir::Index index;
  int64_t slack = 0;
};

// Returns the variables whose values follow from `known` and from the variables that are `fixed`.
// For example, 4·a + b with 0 <= b < 4 determines a and b, and x / 4 and x % 4 together determine
// x. Conservative: a variable that is not returned may be determined nevertheless. `wanted`: a
// variable that alone matters; others may be missing.
std::vector<ir::AtomId> Determined(ir::Program& program, std::vector<Known> known,
                                   absl::FunctionRef<bool(ir::AtomId)> fixed,
                                   ir::AtomId wanted = ir::kNoAtom);

// Whether the loops from `top` down to the block visit different iterations of the block for fixed
// values of the loops above `top`. False if that cannot be proved.
bool OneToOneUnder(ir::Program& program, ir::NodeId block, ir::NodeId top);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_
