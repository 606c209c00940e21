#ifndef HONE_SERVER_TUNER_SPACE_PART_SPACES_H_
#define HONE_SERVER_TUNER_SPACE_PART_SPACES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/workload.h"
#include "common/target/target.h"
#include "server/tuner/space/design_space.h"
#include "server/tuner/space/generate.h"

namespace hone::space {

// Returns the component number of each stage of a workload: 0, 1, … in stage order. Two stages are
// in one component if one of them reads the other's result, directly or through others. Stages that
// only share inputs are in different components, because their schedules do not affect each other.
std::vector<int> StageComponents(const ir::Workload& workload);

// Consecutive stages of a workload, [begin, end).
struct StageRange {
  int begin = 0, end = 0;
  friend bool operator==(const StageRange&, const StageRange&) = default;
};

// Divides a workload into parts that the rules schedule well on their own: one contraction or
// window with the element-wise stages before and after it, or reductions of rows with the
// element-wise stages around them. Together, the parts are all stages in order.
std::vector<StageRange> PartsOf(const ir::Workload& workload);

// Returns some stages as a workload. Tensors of earlier stages are inputs, and those that later
// stages read are outputs; names are kept. InvalidArgument: the stages are not valid on their own.
absl::StatusOr<ir::Workload> WorkloadOf(const ir::Workload& whole, StageRange stages);

// Whether a workload has so many parts that combining their alternatives would give more design
// spaces than a search can use.
bool HasManyParts(const ir::Workload& workload, absl::Span<const StageRange> parts);

// Makes a few design spaces for a workload of many parts. Every part that occurs, up to names, gets
// its own design spaces once, and the best schedule of each is drafted. The first space of the
// workload takes the best space of each part, the second the second best, and so on. The time
// grows with the number of different parts, and hardly with the number of parts. Errors are those
// of GenerateDesignSpaces.
absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> SpacesOfParts(
    std::shared_ptr<const ir::Workload> workload, absl::Span<const StageRange> parts,
    const target::Target& target, const Generation& generation);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_PART_SPACES_H_
