#ifndef HONE_SERVER_SEARCH_PUBLISHED_BAYESIAN_INDEX_SEARCH_H_
#define HONE_SERVER_SEARCH_PUBLISHED_BAYESIAN_INDEX_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

// Those of Rocke's optimizer, unless said otherwise.
struct BayesianIndexOptions {
  int schedules = 1024;   // drawn per Propose; half of it where context.population is 256, …
  double random = 0.2;    // of a batch: drawn, without optimization
  double measured = 0.6;  // of the other seeds: the best measured ones; the rest the best drawn
  double kappa = 5;       // of the upper confidence bound
  // Steps of an optimization while fewer results than `early`, than `late`, and from then on.
  int early_steps = 1, middle_steps = 10, late_steps = 20;
  int early = 64, late = 256;
  int suggested = 64;  // random vectors of which a step takes the one with the highest bound
                       // (ours: the original draws 10,000 and climbs)
  int logged = 128;    // latest scores of a design space that its process holds (ours)
};

// Bayesian optimization over indices, as published (Rocke, 2023) for MetaSchedule: a design space
// is the box [0, 1)^sites, a coordinate says the place in the list of the site's values; a Gaussian
// process per design space, Matérn 5/2, logs *scores* of the ranking, not latencies; upper
// confidence bound. Every seed – a good measured or a good drawn schedule – begins a run in its
// design space, whose best candidate is proposed. Known weaknesses are part of it: the truncation
// seldom reaches a last index, and neighbouring indices need not be alike.
std::unique_ptr<SearchStrategy> MakeBayesianIndexSearch(SearchContext context,
                                                        const BayesianIndexOptions& options = {});

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_PUBLISHED_BAYESIAN_INDEX_SEARCH_H_
