#ifndef HONE_TESTS_COMMON_SCHEDULE_RANDOM_STEP_H_
#define HONE_TESTS_COMMON_SCHEDULE_RANDOM_STEP_H_

#include <vector>

#include "common/base/rng.h"
#include "common/ir/program.h"
#include "tests/common/schedule/step.h"

namespace hone::schedule {

// Draws what to try next on a program: mostly one step, of any primitive, legal or not; for
// tensorize also the splits and the reorder that give an instruction its nest.
std::vector<Step> RandomSteps(Rng& rng, const ir::Program& program);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_RANDOM_STEP_H_
