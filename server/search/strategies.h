#ifndef HONE_SERVER_SEARCH_STRATEGIES_H_
#define HONE_SERVER_SEARCH_STRATEGIES_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "server/search/search_strategy.h"

// The strategies of the registry, each of <name>_search.cc.
namespace hone::search {

// Uniform draws, untried design spaces first: the baseline.
std::unique_ptr<SearchStrategy> MakeRandomSearch(SearchContext context);

struct EvolutionaryOptions {
  absl::string_view name = "evolutionary";
  bool draft = false;      // whether the draft leads until the model has learnt
  double mutation = 0.85;  // probability that a child is a mutation; else it is a crossover
  // Whether crossovers merge parents stage by stage, as the paper says; else site by site.
  bool by_stages = false;
  // Above 0: MetaSchedule's chains (Shao et al., NeurIPS 2022) instead of the roulette. Every
  // candidate of a generation is mutated, and the child takes its place with probability
  // min(1, e^((child's score − its own) / temperature)).
  double temperature = 0;
};

// Ansor's evolutionary search (Zheng et al., OSDI 2020) over all design spaces at once. A Propose
// evolves a population of context.population candidates over three generations: parents by roulette
// on max(score, 0), a mutation with probability options.mutation, else a crossover of two parents
// of one space (which the paper describes and its code lacks): the child takes the decisions of
// each stage group (stage_groups.h) from the parent whose statements of that group the model scores
// higher. Where the child is not new, other partners are tried, in the end it is a mutation. In
// spaces with one group, with a model that does not score statements on their own
// (CostModel::RowScores), and before it has learnt, each site comes from either parent at random.
// The first generation holds the best measured ones (up to 20 %), survivors of the last call, and
// random draws (at least 50). The best unseen of all generations are proposed, and 5 % random
// draws.
//
// Scores are those of ranking.h: without the draft the first candidates are random, as published.
// The first batch covers every design space that has a candidate; while a space is untried no other
// one fills more than half of a batch.
std::unique_ptr<SearchStrategy> MakeEvolutionarySearch(SearchContext context,
                                                       const EvolutionaryOptions& options = {});

// Bayesian optimization on measured latencies. Log latency is the ranking's estimate (draft and
// model, as it was before the measurement; its slope is fitted, so that a poor estimate fades) plus
// a Gaussian process per design space over log2 of tile factors (Matérn 5/2) times choices
// (Hamming); the kernel's parameters maximize the likelihood over all spaces. The pool holds draws
// and moves inside a trust region around the best of each space (Eriksson et al., NeurIPS 2019). A
// batch is its best by the posterior mean and then one Thompson draw of the joint posterior per
// candidate, each accepted with the probability that a candidate there does not fail.
std::unique_ptr<SearchStrategy> MakeBayesianSearch(SearchContext context);

// Coordinate descent (Canesche et al., CC 2024; AutoTVM's DropletTuner): measures the neighbours of
// the incumbent, which gives way to one that is faster with statistical significance; while there
// is room in a batch, also hops of two, three and more steps. Neighbours are the hops of
// site_values.h (neighbouring divisors), one decision first, then several at once, each group in
// the order of the ranking. Beyond the paper: it starts in every design space, at the best of the
// draft where there is one; when nothing around the incumbent is left, the best candidate with a
// neighbour left takes its place, and draws fill the rest. `draft`: whether the draft leads until
// the model has learnt.
std::unique_ptr<SearchStrategy> MakeDropletSearch(SearchContext context, bool draft = false);

// Other strategies under a bandit. They share all results, and each says what it would measure
// next:
//   evolutionary  opens: the best candidate of every design space by the draft, then the best;
//   bayesian      learns how far the draft is off per design space (the cells), by Thompson draws;
//   droplet       hops to neighbouring divisors of the best: the finishing descent.
// After the opening – until 8 results the first, then the second, hops from the third up to 16 –
// every place of a batch goes to a strategy by a Thompson draw of its reward: half for being close
// to the best, half for beating it. Candidates that two strategies want are measured once.
std::unique_ptr<SearchStrategy> MakePortfolioSearch(SearchContext context);

// Those of published/:

struct AnnealingOptions {
  absl::string_view name = "annealing";
  // Zheng's variants. Adaptive: the temperature follows the share of accepted moves.
  enum class Cooling { kLinear, kGeometric, kAdaptive };
  Cooling cooling = Cooling::kLinear;
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

// Bayesian optimization over indices, as published (Rocke, 2023) for MetaSchedule: a design space
// is the box [0, 1)^sites, a coordinate says the place in the list of the site's values; a Gaussian
// process per design space, Matérn 5/2, logs *scores* of the ranking, not latencies; upper
// confidence bound. Every seed – a good measured or a good drawn schedule – begins a run in its
// design space, whose best candidate is proposed. Known weaknesses are part of it: the truncation
// seldom reaches a last index, and neighbouring indices need not be alike.
std::unique_ptr<SearchStrategy> MakeBayesianIndexSearch(SearchContext context);

// AutoTVM's genetic tuner (Chen et al., NeurIPS 2018). Genes are the sites of a decision vector;
// parents are drawn in proportion to their measured throughput, a child takes the sites before a
// random place from one and the rest from the other. Children that are known mutate until they are
// new. Looks at no model and no draft. Beyond the paper: the first generation covers all design
// spaces, and both parents are of one space.
std::unique_ptr<SearchStrategy> MakeGeneticSearch(SearchContext context);

// AutoTVM's GridSearchTuner: enumerates decision vectors in the order of vector_cursor.h, design
// spaces in turn. Looks at no model, no draft and no seed: two searches of the same spaces propose
// the same. Where a long stretch of the order holds no legal candidate, and for what the lists
// leave out, it takes uniform draws.
std::unique_ptr<SearchStrategy> MakeGridSearch(SearchContext context);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_STRATEGIES_H_
