#ifndef HONE_SERVER_SPACE_GENERATE_H_
#define HONE_SERVER_SPACE_GENERATE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"
#include "common/target/target.h"
#include "server/space/design_space.h"

namespace hone::space {

// The design spaces that the rules (rule.h) make for a workload on a target: at least one, names
// and digests all different, the same for the same arguments. A few milliseconds each. Those of
// other algorithms (algorithm.h) that the job's tolerance allows come last; 0: a strict job.
// InvalidArgument: the workload is not valid, or no space has a schedule that replays.
absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> GenerateDesignSpaces(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target,
    double tolerance = 0);

// The schedule that tuning is compared with, as a design space without decisions ("default"): in
// every stage the outer spatial loops are fused and parallel, the innermost one is vectorized by
// the target's lanes, with the reductions outside the vector; nothing is tiled. Sums of more than
// 16,384 floats are added up in parts. InvalidArgument: the workload is not valid.
absl::StatusOr<std::unique_ptr<DesignSpace>> DefaultCandidate(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_GENERATE_H_
