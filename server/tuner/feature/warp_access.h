#ifndef HONE_SERVER_TUNER_FEATURE_WARP_ACCESS_H_
#define HONE_SERVER_TUNER_FEATURE_WARP_ACCESS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/tuner/feature/gpu_machine.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {

// The cost of one access by a warp.
struct WarpCost {
  double sectors = 1;  // of global memory
  double passes = 1;   // over the banks of shared memory
  double least = 1;    // passes without conflicts
  double useful = 1;   // share of the sectors' bytes that the threads asked for
};

// Computes the cost of an access from the addresses of the first warp of a block, with all other
// loops at 0. Reuses its memory. Used by one thread at a time.
class WarpAccess {
 public:
  // `strides`: of the buffer's dimensions, in elements. `width`: consecutive elements per thread.
  WarpCost Cost(const Nest& nest, const Statement& statement, const Access& access,
                absl::Span<const int64_t> strides, int64_t width, const GpuMachine& machine);

 private:
  std::vector<int64_t> values_;  // per atom
  std::vector<int64_t> addresses_;
};

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_WARP_ACCESS_H_
