#ifndef HONE_SERVER_SEARCH_PUBLISHED_ANNEALING_SEARCH_H_
#define HONE_SERVER_SEARCH_PUBLISHED_ANNEALING_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

// Those of AutoTVM's XGBTuner and SimulatedAnnealingOptimizer, unless said otherwise.
struct AnnealingOptions {
  absl::string_view name = "annealing";
  int plan = 64;         // results between two plans, and candidates of one
  int steps = 500;       // of a chain
  int patience = 50;     // steps without a change of the plan, after which the chains stop
  double hottest = 1;    // temperature of the first step
  double coldest = 0;    // of the last; geometric cooling ends at a hundredth of the first
  double random = 0.05;  // of the plan's length: drawn at random at its end
  // Greedy choice out of diversity × plan candidates by the values that they add to every decision,
  // next to their score; 1: the plan is the best ones. The paper's λ; off in XGBTuner.
  double diversity = 1;
  double diversity_weight = 0.1;  // of one new value, in scores (the paper's α)

  // Zheng's variants. Adaptive: the temperature follows the share of accepted moves.
  enum class Cooling { kLinear, kGeometric, kAdaptive };
  Cooling cooling = Cooling::kLinear;
  double accepted = 0.3;  // the share at which adaptive cooling aims at half of the way
  // Chains that restart at random points when the best has not changed for half of the patience; at
  // full temperature, at most so often in a plan.
  int restarts = 0;
};

// AutoTVM's model-based tuner (Chen et al., NeurIPS 2018): parallel chains (a quarter of
// context.population: 128) of simulated annealing on the scores of ranking.h, over all design
// spaces; a move draws one decision anew. The best unseen candidates met are the plan from which
// batches are taken, in its order; chains persist from plan to plan. The first batch covers all
// design spaces.
std::unique_ptr<SearchStrategy> MakeAnnealingSearch(SearchContext context,
                                                    const AnnealingOptions& options = {});

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_PUBLISHED_ANNEALING_SEARCH_H_
