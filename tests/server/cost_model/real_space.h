#ifndef HONE_TESTS_SERVER_COST_MODEL_REAL_SPACE_H_
#define HONE_TESTS_SERVER_COST_MODEL_REAL_SPACE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/program.h"
#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// Different candidates of a tiled and a packed matmul (tests/server/feature/programs.h), a real
// space in small, with the latencies of the draft (server/search/draft_score.h) and 3 % of noise on
// them.
struct RealSpace {
  struct Candidate {
    ir::Program program;
    std::vector<int64_t> decisions;
  };
  std::vector<Candidate> candidates;
  std::vector<double> throughput;  // the best has 1

  // Their rows. REQUIRES a registered feature set.
  FeatureMatrix Features(absl::string_view feature_set, int begin, int end) const;
};

// Equal arguments give equal candidates. REQUIRES a trace of enough different ones.
RealSpace DrawRealSpace(absl::string_view trace, uint64_t seed, int candidates);

}  // namespace hone::cost_model

#endif  // HONE_TESTS_SERVER_COST_MODEL_REAL_SPACE_H_
