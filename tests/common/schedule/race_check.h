#ifndef HONE_TESTS_COMMON_SCHEDULE_RACE_CHECK_H_
#define HONE_TESTS_COMMON_SCHEDULE_RACE_CHECK_H_

#include "absl/status/status.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Walks every access of a small program and fails where two iterations of one parallel or
// vectorized loop meet: both write an element, or one reads what another wrote. Buffers that are
// used only under a parallel loop are private to its iterations: there an iteration must write what
// it reads. A vectorized loop that a block reduces over combines its lanes: all of one element.
absl::Status CheckNoRaces(const ir::Program& program);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_RACE_CHECK_H_
