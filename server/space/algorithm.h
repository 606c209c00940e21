#ifndef HONE_SERVER_SPACE_ALGORITHM_H_
#define HONE_SERVER_SPACE_ALGORITHM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/workload.h"

namespace hone::space {

// Another algorithm for a stage of a workload (common/schedule/rewrite), as the first instruction
// of a trace names it: rewrite("winograd", "Y", 4).
struct Algorithm {
  std::string name;  // in names of design spaces: "winograd4"
  std::string rewrite, stage;
  std::vector<int64_t> numbers;
  ir::Workload rewritten;  // what it makes of the workload
};

// The algorithms that the rules offer beside the workload as it is written: those whose tolerance a
// job with this one allows. None for a strict job.
std::vector<Algorithm> AlgorithmsFor(const ir::Workload& workload, double tolerance);

// Whether the stage that computes a tensor may become F(m×m, 3×3): the rewrite is for it, the
// tolerance allows it, and the image is as large as a tile at least – a larger tile computes what
// nobody reads.
bool FitsWinograd(const ir::Workload& workload, absl::string_view stage, int64_t m,
                  double tolerance);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_ALGORITHM_H_
