#ifndef HONE_TESTS_COMMON_SCHEDULE_SHRINK_H_
#define HONE_TESTS_COMMON_SCHEDULE_SHRINK_H_

#include "absl/functional/function_ref.h"
#include "tests/common/schedule/random_trace.h"

namespace hone::schedule {

// Makes a failing trace small while `fails` stays true: drops steps (halves of them, then single
// ones), makes sampled factors literal, factors and positions small, lists of loops short, and,
// where the workload was drawn, its extents small. What comes back fails, and none of these changes
// alone leaves it failing, unless `max_tries` calls of `fails` were not enough to see that.
// REQUIRES fails(failing).
RandomTrace Shrink(RandomTrace failing, absl::FunctionRef<bool(const RandomTrace&)> fails,
                   int max_tries = 4000);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_SHRINK_H_
