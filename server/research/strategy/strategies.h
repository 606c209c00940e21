#ifndef HONE_SERVER_RESEARCH_STRATEGY_STRATEGIES_H_
#define HONE_SERVER_RESEARCH_STRATEGY_STRATEGIES_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/search/strategies.h"

// Strategies of the literature. Each is implemented in <name>_search.cc.
namespace hone::search {

struct AnnealingOptions {
  absl::string_view name = "annealing";
  // Zheng's variants. With kAdaptive the temperature depends on the share of accepted moves.
  enum class Cooling { kLinear, kGeometric, kAdaptive };
  Cooling cooling = Cooling::kLinear;
  // Maximum number of restarts per plan. All chains restart at random points and full temperature
  // when the best candidates have not changed for half of the patience.
  int restarts = 0;
};

// AutoTVM's model-based tuner (Chen et al., NeurIPS 2018). Parallel chains of simulated annealing
// (a quarter of context.population: 128 by default) run over all design spaces on the scores of
// ranking.h. A move redraws one decision. The best unseen candidates that the chains visit form a
// plan, and batches are taken from the plan in order. The chains continue from plan to plan. The
// first batch covers all design spaces.
std::unique_ptr<SearchStrategy> MakeAnnealingSearch(SearchContext context,
                                                    const AnnealingOptions& options = {});

// Bayesian optimization over indices, as published (Rocke, 2023) for MetaSchedule. A design space
// is the box [0, 1)^sites; a coordinate is a position in the list of the site's values. A Gaussian
// process per design space (Matérn 5/2, upper confidence bound) observes *scores* of the ranking,
// not latencies. A run starts from each seed, which is a good measured or a good drawn schedule, in
// the seed's design space, and the best candidate of the run is proposed. Known weaknesses of the
// original are kept: truncation seldom reaches the last index of a list, and candidates with
// neighbouring indices are not necessarily similar.
std::unique_ptr<SearchStrategy> MakeBayesianIndexSearch(SearchContext context);

// The candidates of `evolutionary-drafted` before it knows any result: what a machine without a
// model and without measurements would try, in this order. Results are ignored.
std::unique_ptr<SearchStrategy> MakeDraftSearch(SearchContext context);

// AutoTVM's genetic tuner (Chen et al., NeurIPS 2018). Genes are the sites of a decision vector.
// Parents are drawn in proportion to their measured throughput. A child takes the sites before a
// random position from one parent and the rest from the other. Children that are known mutate until
// they are new. Uses neither a model nor the draft. Beyond the paper, the first generation covers
// all design spaces, and both parents are from one space.
std::unique_ptr<SearchStrategy> MakeGeneticSearch(SearchContext context);

// AutoTVM's GridSearchTuner: enumerates decision vectors in the order of vector_cursor.h, taking
// turns between design spaces. Uses no model, draft or random seed: two searches of the same spaces
// enumerate the same candidates. If a long part of the order has no legal candidate, and for values
// that are not in the lists, it uses uniform draws.
std::unique_ptr<SearchStrategy> MakeGridSearch(SearchContext context);

// Chooses which candidates an evolutionary search replays (EvolutionaryOptions::filter), with a
// model that reads schedules alone, such as tlp-fast: it scores a draw in a fraction of the time of
// a replay. It learns from the results of the search, from 32 on. `context` must outlive the
// filter.
std::unique_ptr<PointFilter> MakeScheduleFilter(const SearchContext& context, std::string model);

}  // namespace hone::search

#endif  // HONE_SERVER_RESEARCH_STRATEGY_STRATEGIES_H_
