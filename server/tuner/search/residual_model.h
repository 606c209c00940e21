#ifndef HONE_SERVER_TUNER_SEARCH_RESIDUAL_MODEL_H_
#define HONE_SERVER_TUNER_SEARCH_RESIDUAL_MODEL_H_

#include <vector>

#include "absl/types/span.h"
#include "server/tuner/cost_model/gaussian_process.h"
#include "server/tuner/search/history.h"
#include "server/tuner/search/ranking.h"
#include "server/tuner/space/design_space.h"

namespace hone::search {

// Converts decisions to a kernel input. A tile gives the log2 of its sizes. A choice gives the
// index of its row and the log2 of the row's numbers, or zeros if some row of the choice has a
// number that is not positive. Returns an empty input if the decisions are illegal.
cost_model::KernelInput EmbedDecisions(const space::DesignSpace& space,
                                       absl::Span<const int64_t> decisions);

// Models log(latency / best latency) of a candidate as a multiple of the ranking's estimate, plus
// an offset and a Gaussian process per design space. Immutable.
class ResidualModel {
 public:
  // Fits the model to all results. The process of a space gets at most `fitted` of its results;
  // half of them are the best and half the latest. `deviation`: the standard deviation of the
  // processes while there are too few results to fit the kernel. REQUIRES: history.Refresh was
  // called after the last Tell.
  static ResidualModel Of(const SearchContext& context, const History& history,
                          const Ranking& ranking, int fitted, double deviation);

  // The estimate from a score of the ranking, without the process.
  double Estimate(int space, double score) const;
  const cost_model::GaussianProcess& process(int space) const { return processes_[space]; }
  // The probability that a candidate with this input does not fail, in (0, 1), estimated from the
  // outcomes of similar candidates.
  double Feasibility(int space, const cost_model::KernelInput& input) const;

 private:
  struct Outcome {
    cost_model::KernelInput input;
    bool ok;
  };

  double slope_ = 1;
  std::vector<double> offsets_;
  std::vector<cost_model::GaussianProcess> processes_;
  std::vector<std::vector<Outcome>> outcomes_;  // per space; empty if nothing failed there
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_RESIDUAL_MODEL_H_
