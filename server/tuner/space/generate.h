#ifndef HONE_SERVER_TUNER_SPACE_GENERATE_H_
#define HONE_SERVER_TUNER_SPACE_GENERATE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/program.h"
#include "common/ir/workload.h"
#include "common/target/target.h"
#include "server/tuner/space/design_space.h"

namespace hone::space {

// How design spaces are made.
struct Generation {
  // Spaces of other algorithms (algorithm.h) that it allows come last; 0: a strict job.
  double tolerance = 0;
  // Estimates a program's speed; higher is faster. Ranks the schedules of the parts of a large
  // workload (part_spaces.h). Null: the first ones are taken.
  std::function<double(const ir::Program&)> score;
  // Called every few milliseconds. An error ends the generation, which returns it. May be null.
  std::function<absl::Status()> check;
  // If not null, is increased by the number of spaces that were dropped because their schedules do
  // not replay.
  int* dropped = nullptr;
};

// Returns the design spaces that the rules (rule.h) make for a workload on a target. There is at
// least one; names and digests are distinct; the result is deterministic. Takes a few milliseconds
// per space. A workload of many parts gets a few spaces that are put together from those of its
// parts (part_spaces.h). If no space of the rules replays, returns the default schedule only.
// InvalidArgument: the workload is invalid. Also returns errors of `check`.
absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> GenerateDesignSpaces(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target,
    const Generation& generation);
// Does the same with only a tolerance.
absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> GenerateDesignSpaces(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target,
    double tolerance = 0);

// Returns the schedule that tuning is compared with, as a design space without decisions
// ("default"). In every stage the outer spatial loops are fused and parallel, and the innermost one
// is vectorized with the target's lanes, with the reductions outside of the vector. On a GPU,
// blocks of 64 threads compute one result per thread instead. Nothing is tiled. Sums of more than
// 16,384 floats are computed in parts. InvalidArgument: the workload is invalid.
absl::StatusOr<std::unique_ptr<DesignSpace>> DefaultCandidate(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_GENERATE_H_
