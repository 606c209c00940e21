#ifndef HONE_SERVER_TUNER_SPACE_ALGORITHM_H_
#define HONE_SERVER_TUNER_SPACE_ALGORITHM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/workload.h"
#include "common/target/target.h"

namespace hone::space {

// Another algorithm for a stage of a workload (common/schedule/rewrite). The first instruction of a
// trace selects it, for example rewrite("winograd", "Y", 4).
struct Algorithm {
  std::string name;  // used in names of design spaces: "winograd4", "bf16"
  std::string rewrite, stage;
  std::vector<int64_t> numbers;
  ir::Workload rewritten;
  // Whether the rules schedule it as thoroughly as the workload as written (Sketch::minor).
  bool thoroughly = false;
};

// Returns the algorithms that the rules offer on a target besides the workload as written: for GPUs
// im2col (implicit GEMM) of padded convolutions, whose copies in shared memory contain the padding,
// so that the threads need no conditions; Winograd's and products of bf16 if a job with this
// tolerance allows them.
std::vector<Algorithm> AlgorithmsFor(const ir::Workload& workload, const target::Target& target,
                                     double tolerance);

// Whether the stage that computes a tensor may become F(m×m, 3×3): the rewrite applies, the
// tolerance allows it, and the image is at least as large as a tile (a larger tile computes unused
// outputs).
bool FitsWinograd(const ir::Workload& workload, absl::string_view stage, int64_t m,
                  double tolerance);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_ALGORITHM_H_
