#ifndef HONE_TESTS_COMMON_SCHEDULE_SHRINK_H_
#define HONE_TESTS_COMMON_SCHEDULE_SHRINK_H_

#include "absl/functional/function_ref.h"
#include "tests/common/schedule/random_trace.h"

namespace hone::schedule {

// Shrinks a failing trace while `fails` stays true: drops steps (halves, then single ones), makes
// sampled factors literal, reduces factors and positions, shortens lists of loops, and reduces the
// extents of a drawn workload. The result fails, and none of these changes alone leaves it failing,
// unless `max_tries` calls of `fails` were too few to establish that. REQUIRES fails(failing).
RandomTrace Shrink(RandomTrace failing, absl::FunctionRef<bool(const RandomTrace&)> fails,
                   int max_tries = 4000);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_SHRINK_H_
