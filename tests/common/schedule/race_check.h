#ifndef HONE_TESTS_COMMON_SCHEDULE_RACE_CHECK_H_
#define HONE_TESTS_COMMON_SCHEDULE_RACE_CHECK_H_

#include "absl/status/status.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Simulates every access of a small program and fails if two iterations of a parallel or vectorized
// loop conflict: both write an element, or one reads an element that the other wrote. Buffers used
// only under a parallel loop are private to its iterations, so an iteration must write every
// element that it reads. A vectorized loop that a block reduces over combines its lanes, which must
// belong to one element.
absl::Status CheckNoRaces(const ir::Program& program);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_RACE_CHECK_H_
