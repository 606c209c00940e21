#ifndef HONE_SERVER_TUNER_SPACE_GENERATE_H_
#define HONE_SERVER_TUNER_SPACE_GENERATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"
#include "common/ir/workload.h"
#include "common/target/target.h"
#include "server/tuner/space/design_space.h"

namespace hone::space {

// A rewrite of one stage, rewrite("winograd", "Y", 4).
struct RewriteStep {
  std::string rewrite, stage;
  std::vector<int64_t> numbers;
};

// Another algorithm for some stages of a workload (common/schedule/rewrite). The first instructions
// of a trace select it.
struct Algorithm {
  std::string name;                // used in names of design spaces: "winograd4", "bf16"
  std::vector<RewriteStep> steps;  // in this order
  ir::Workload rewritten;
  // Whether the rules schedule it as thoroughly as the workload as written (Sketch::minor).
  bool thoroughly = false;
  // Whether the workload as written gets no design spaces.
  bool replaces = false;
};

// Returns the algorithms that the rules offer on a target besides the workload as written: for GPUs
// im2col (implicit GEMM) of padded convolutions, whose copies in shared memory contain the padding,
// so that the threads need no conditions; for CPUs other axes (regroup_axes), with which grouped
// convolutions are batches of products, and vectors run along all pixels of an image, and padded
// copies for depthwise convolutions with channels first, and for convolutions whose pixels then
// are rows of tiles; Winograd's and products of bf16 if a job with this tolerance allows them.
std::vector<Algorithm> AlgorithmsFor(const ir::Workload& workload, const target::Target& target,
                                     double tolerance);

// Whether the stage that computes a tensor may become F(m×m, 3×3): the rewrite applies, the
// tolerance allows it, and the image is at least as large as a tile (a larger tile computes unused
// outputs).
bool FitsWinograd(const ir::Workload& workload, absl::string_view stage, int64_t m,
                  double tolerance);

struct Rule;  // rule.h

// How design spaces are made.
struct Generation {
  // Spaces of other algorithms that it allows come last; 0: a strict job.
  double tolerance = 0;
  // Whether there may be spaces of other algorithms. They begin with a rewrite, which cannot follow
  // the schedule of another part of a workload.
  bool rewrites = true;
  // The rules in the order of application; null: Rules().
  const std::vector<Rule>* rules = nullptr;
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
