#ifndef HONE_SERVER_SEARCH_RESIDUAL_MODEL_H_
#define HONE_SERVER_SEARCH_RESIDUAL_MODEL_H_

#include <vector>

#include "server/search/gaussian_process.h"
#include "server/search/history.h"
#include "server/search/ranking.h"

namespace hone::search {

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
  const GaussianProcess& process(int space) const { return processes_[space]; }
  // That a candidate there does not fail, in (0, 1): the failures near it against the others.
  double Feasibility(int space, const KernelInput& input) const;

 private:
  struct Outcome {
    KernelInput input;
    bool ok;
  };

  double slope_ = 1;
  std::vector<double> offsets_;
  std::vector<GaussianProcess> processes_;
  std::vector<std::vector<Outcome>> outcomes_;  // per space; empty where nothing failed
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_RESIDUAL_MODEL_H_
