#ifndef HONE_SERVER_SEARCH_RESIDUAL_MODEL_H_
#define HONE_SERVER_SEARCH_RESIDUAL_MODEL_H_

#include <vector>

#include "absl/types/span.h"
#include "server/cost_model/gaussian_process.h"
#include "server/search/history.h"
#include "server/search/ranking.h"
#include "server/space/design_space.h"

namespace hone::search {

// The parts of tiles as log2; of choices the number of the row, and log2 of its numbers where all
// rows are positive. REQUIRES legal decisions (others give an empty input).
cost_model::KernelInput EmbedDecisions(const space::DesignSpace& space,
                                       absl::Span<const int64_t> decisions);

// log(latency / best latency) of candidates: a multiple of what the ranking estimates, plus an
// offset and a Gaussian process per design space. Immutable.
class ResidualModel {
 public:
  // From everything told; of a space at most `fitted` results, half of them the best and half the
  // latest. `deviation` of the processes while there is too little to fit them to. REQUIRES
  // history.Refresh since the last Tell.
  static ResidualModel Of(const SearchContext& context, const History& history,
                          const Ranking& ranking, int fitted, double deviation);

  // Without the process: from a score of the ranking.
  double Estimate(int space, double score) const;
  const cost_model::GaussianProcess& process(int space) const { return processes_[space]; }
  // That a candidate there does not fail, in (0, 1): the failures near it against the others.
  double Feasibility(int space, const cost_model::KernelInput& input) const;

 private:
  struct Outcome {
    cost_model::KernelInput input;
    bool ok;
  };

  double slope_ = 1;
  std::vector<double> offsets_;
  std::vector<cost_model::GaussianProcess> processes_;
  std::vector<std::vector<Outcome>> outcomes_;  // per space; empty where nothing failed
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_RESIDUAL_MODEL_H_
