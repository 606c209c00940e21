#ifndef HONE_SERVER_SPACE_GENERATE_H_
#define HONE_SERVER_SPACE_GENERATE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"
#include "common/target/target.h"
#include "server/space/design_space.h"

namespace hone::space {

// Returns the design spaces that the rules (rule.h) make for a workload on a target. There is at
// least one; names and digests are distinct; the result is deterministic. Takes a few milliseconds
// per space. Spaces of other algorithms (algorithm.h) that `tolerance` allows come last; 0: a
// strict job. InvalidArgument: the workload is invalid, or no space has a schedule that replays.
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

#endif  // HONE_SERVER_SPACE_GENERATE_H_
