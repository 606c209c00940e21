#ifndef HONE_TESTS_WORKER_COMPILE_LOWER_RANDOM_GPU_SCHEDULE_H_
#define HONE_TESTS_WORKER_COMPILE_LOWER_RANDOM_GPU_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/interpreter.h"
#include "common/ir/program.h"
#include "common/ir/workload.h"
#include "common/target/target.h"

namespace hone::lower {

// A random workload with a random schedule for a GPU, small integers as inputs, and the results.
struct RandomGpuSchedule {
  std::shared_ptr<const ir::Workload> workload;
  ir::Program program;
  std::vector<ir::Scalars> inputs, outputs;
};

// Takes the steps of a random trace that GPUs have code for. If `target` is given, its instructions
// compute what they fit. Then binds loops of each nest to axes
// as far as that is legal: some of the outermost to blocks, and loops below, in sibling nests as
// well, to threads. Splits loops where that gives the threads of sibling nests equal numbers. The
// same seed gives the same schedule on every machine.
absl::StatusOr<RandomGpuSchedule> MakeRandomGpuSchedule(uint64_t seed,
                                                        const target::Target* target = nullptr);

}  // namespace hone::lower

#endif  // HONE_TESTS_WORKER_COMPILE_LOWER_RANDOM_GPU_SCHEDULE_H_
