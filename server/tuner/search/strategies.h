#ifndef HONE_SERVER_TUNER_SEARCH_STRATEGIES_H_
#define HONE_SERVER_TUNER_SEARCH_STRATEGIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "server/tuner/search/search_strategy.h"

// The strategies of the product. Each is implemented in <name>_search.cc; those of the literature
// are in server/research/strategy.
namespace hone::search {

// An entry of the registry. `make` requires what CreateSearchStrategy checks.
struct StrategyEntry {
  absl::string_view name;
  std::function<std::unique_ptr<SearchStrategy>(SearchContext context)> make;
};

// Adds a strategy to the registry, which is sorted by name. REQUIRES: the registry has no strategy
// of that name, and no other thread uses it.
void RegisterSearchStrategy(StrategyEntry entry);

// The baseline: uniform draws, untried design spaces first.
std::unique_ptr<SearchStrategy> MakeRandomSearch(SearchContext context);

class History;
struct Point;

// Judges candidates before they are replayed. Used by one thread at a time.
class PointFilter {
 public:
  virtual ~PointFilter() = default;
  // Learns from the results. Returns whether it has seen enough to judge. Errors are those of its
  // model.
  virtual absl::StatusOr<bool> Learn(const History& history) = 0;
  // Returns one score per point; higher is better. REQUIRES: Learn returned true.
  virtual absl::StatusOr<std::vector<double>> Score(absl::Span<const Point> points) = 0;
};

struct EvolutionaryOptions {
  absl::string_view name = "evolutionary";
  bool draft = false;      // whether the draft ranks candidates until the model has learnt
  double mutation = 0.85;  // probability that a child is a mutation rather than a crossover
  // If positive, MetaSchedule's chains (Shao et al., NeurIPS 2022) replace the roulette. Every
  // candidate of a generation is mutated, and the child replaces it with probability
  // min(1, e^((child's score − candidate's score) / temperature)).
  double temperature = 0;
  // With a filter, `draws` times as many random draws and children are made as the generation has
  // places for, and the filter chooses those that are replayed, once it has learned enough.
  std::function<std::unique_ptr<PointFilter>(const SearchContext& context)> filter;
  int draws = 10;
  double population = 1;  // times SearchContext::population
  int generations = 3;    // including the first
  // Returns a mutation, or an error if it finds none. Null: DesignSpace::Mutate.
  std::function<absl::StatusOr<std::vector<int64_t>>(const space::DesignSpace& space,
                                                     absl::Span<const int64_t> decisions, Rng& rng)>
      mutate;
};

// Ansor's evolutionary search (Zheng et al., OSDI 2020) over all design spaces at once. A Propose
// evolves a population of context.population candidates over some generations. Parents are drawn
// by roulette on max(score, 0). A child is a mutation with probability options.mutation, otherwise
// a crossover of two parents of one space: each site comes from a random parent. (The paper
// describes a crossover by the scores of nodes, but its code contains none.) The first generation
// contains the best measured candidates (up to 20 %), survivors of the last call, and random draws
// (at least 50). The batch consists of the best unseen candidates of all generations and 5 % random
// draws.
//
// Scores are those of ranking.h: without the draft the first candidates are random, as published.
// The first batch covers every design space that has a candidate. While a space is untried, no
// space gets more than half of a batch.
std::unique_ptr<SearchStrategy> MakeEvolutionarySearch(SearchContext context,
                                                       const EvolutionaryOptions& options = {});

// Bayesian optimization on measured latencies. Log latency is modelled as the ranking's estimate
// (draft and model before the measurement) plus a Gaussian process per design space. The slope of
// the estimate is fitted, which reduces the weight of a poor estimate. The kernel is a Matérn 5/2
// kernel over the log2 of tile factors times a Hamming kernel over choices; its parameters maximize
// the likelihood over all spaces. The pool contains draws and moves inside a trust region around
// the best results of each space (Eriksson et al., NeurIPS 2019). The first candidate of a batch
// has the best posterior mean. Each further candidate comes from a Thompson draw of the joint
// posterior, and is accepted with the estimated probability that it does not fail.
std::unique_ptr<SearchStrategy> MakeBayesianSearch(SearchContext context);

// Coordinate descent (Canesche et al., CC 2024; AutoTVM's DropletTuner). It measures the neighbours
// of the incumbent. A neighbour that is faster with statistical significance becomes the incumbent.
// Neighbours are the hops of site_values.h (neighbouring divisors), first of one decision, then of
// two at once, then hops of two, three and more steps while the batch is not full. Each of these
// groups is in the order of the ranking. Beyond the paper, the search starts in every design space,
// at the best candidate of the draft if there is one. When the incumbent has no unmeasured
// neighbours, those of the next best candidates are measured, and draws fill the rest of the batch.
// `draft`: whether the draft ranks candidates until the model has learnt.
std::unique_ptr<SearchStrategy> MakeDropletSearch(SearchContext context, bool draft = false);

// Runs three strategies with one evaluator under a bandit. All results are told to each of them:
//   evolutionary  proposes the best candidate of every design space by the draft, then the best;
//   bayesian      learns the error of the draft in each design space, and uses Thompson draws;
//   droplet       descends from the best results by hops to neighbouring divisors.
// All candidates come from evolutionary until there are 8 results and no design space is untried.
// Until there are 16 results, half come from bayesian and half from droplet. After that, a Thompson
// draw of the expected rewards selects the strategy for each slot of a batch. Half of the reward is
// for being close to the best latency, half for improving it. Candidates that two strategies
// propose are measured once.
std::unique_ptr<SearchStrategy> MakePortfolioSearch(SearchContext context);

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_STRATEGIES_H_
