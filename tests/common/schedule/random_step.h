#ifndef HONE_TESTS_COMMON_SCHEDULE_RANDOM_STEP_H_
#define HONE_TESTS_COMMON_SCHEDULE_RANDOM_STEP_H_

#include <vector>

#include "common/base/rng.h"
#include "common/ir/program.h"
#include "tests/common/schedule/step.h"

namespace hone::schedule {

// Draws the next step to try on a program: usually a single use of any primitive, legal or not. For
// tensorize, also the splits and the reorder that prepare the nest.
std::vector<Step> RandomSteps(Rng& rng, const ir::Program& program);

// Replaces some of a step's arguments by ones that rarely make sense. The step counts as one with
// literal factors.
Step Garbled(Rng& rng, Step step);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_RANDOM_STEP_H_
