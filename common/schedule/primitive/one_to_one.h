#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/ir/program.h"

// Analyzes whether different iterations of loops access different places.
namespace hone::schedule {

// Knowledge about an index over loop variables: its value, up to an addend in [0, slack].
struct Known {
  ir::Index index;
  int64_t slack = 0;
};

// The variables whose values follow from `known`, given also those in `fixed`: digits of a
// positional number (4·a + b with b < 4 determines a and b), and floordiv and mod digits that make
// up their argument. Conservative: a missing variable may still be determined.
std::vector<ir::AtomId> Determined(ir::Program& program, std::vector<Known> known,
                                   absl::FunctionRef<bool(ir::AtomId)> fixed);

// Whether the loops from `top` down to the block visit different iterations of the block for fixed
// values of the loops above `top`. False if that cannot be proved.
bool OneToOneUnder(ir::Program& program, ir::NodeId block, ir::NodeId top);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_ONE_TO_ONE_H_
