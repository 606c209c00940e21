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
  // How a plan is chosen from the candidates that the chains visit: the best; those that also have
  // different decisions (AutoTVM's diversity-aware selection); or one of each cluster (Chameleon's
  // adaptive sampling).
  enum class Selection { kBest, kDiverse, kClusters };
  Selection selection = Selection::kBest;
};

// AutoTVM's model-based tuner (Chen et al., NeurIPS 2018). Parallel chains of simulated annealing
// (a quarter of context.population: 128 by default) run over all design spaces on the scores of
// ranking.h. A move redraws one decision. The best unseen candidates that the chains visit form a
// plan, and batches are taken from the plan in order. The chains continue from plan to plan. The
// first batch covers all design spaces.
//
// Chameleon (Ahn et al., ICLR 2020): the visited candidates are divided into 8 to 64 clusters, at
// the knee of the loss of k-means, and the candidates nearest to the centers are measured. One that
// does not promise much is replaced by the most frequent decisions. Its reinforcement learning is
// replaced by the chains.
std::unique_ptr<SearchStrategy> MakeAnnealingSearch(SearchContext context,
                                                    const AnnealingOptions& options = {});

// Ansor's evolution with its published parameters: four generations after the first, a population
// four times as large as others' (2048 by default), and its kinds of mutations, which are weighted:
// tile sizes 0.90, unrolling 0.04, compute locations 0.05, parallel granularity 0.01; on GPUs tile
// sizes 0.90, unrolling 0.10. Kinds that a space does not have are left out. A mutation of a tile
// moves a random divisor between two parts. The other 15 % of the children are crossovers by sites.
std::unique_ptr<SearchStrategy> MakeAnsorSearch(SearchContext context);

struct BayesianIndexOptions {
  absl::string_view name = "bayesian-index";
  enum class Acquisition { kUpperBound, kExpectedImprovement, kProbabilityOfImprovement };
  Acquisition acquisition = Acquisition::kUpperBound;
  double kappa = 5;  // weight of the deviation in the upper bound, while the search explores
  double xi = 0.1;   // improvement that the other two ask for, in deviations
  // After this many results the search exploits: kappa and xi are multiplied by `exploit`. (Our
  // numbers; the paper only names the phases.)
  int64_t explored = 256;
  double exploit = 0.2;
  // The acquisition is computed at so many random places (scaled by the population / 512), and then
  // climbed by L-BFGS from the best of them and from `climbs` random ones.
  int draws = 10000;
  int climbs = 10;
  // Whether the box of a run shrinks around its best place (Stander and Craig, 2002).
  bool reduces_domain = false;
};

// Bayesian optimization over indices, as published (Rocke, 2023) for MetaSchedule. A design space
// is the box [0, 1)^sites; a coordinate is a position in the list of the site's values. A Gaussian
// process per design space (Matérn 5/2; the length scale maximizes the marginal likelihood before
// every step) observes *scores* of the ranking, not latencies. A run starts from each seed, which
// is a good measured or a good drawn schedule, in the seed's design space, and the best candidate
// of the run is proposed. Known weaknesses of the original are kept: truncation seldom reaches the
// last index of a list, and candidates with neighbouring indices are not necessarily similar.
std::unique_ptr<SearchStrategy> MakeBayesianIndexSearch(SearchContext context,
                                                        const BayesianIndexOptions& options = {});

struct BeamOptions {
  absl::string_view name = "beam";
  int width = 32;     // partial schedules that are kept (scaled by the population / 512)
  int passes = 5;     // of a Propose
  int branching = 8;  // the most values that are tried for a decision (ours)
  // The value of a partial schedule: the score of its best known completion, what was learned, or
  // the mean of both. Until there are results, the first.
  enum class Value { kSampled, kLearned, kBoth };
  Value value = Value::kBoth;
  // The cost model that learns the value from the results of the search (ScheduleModel), such as
  // "state-value"; "": trees on the decisions.
  absl::string_view value_model = "";
};

// Beam search over partial schedules, as in Halide's automatic scheduler (Adams et al., SIGGRAPH
// 2019): the decisions are made one after the other, over all design spaces at once. Each pass but
// the first stays near the schedules at which the one before ended, coarsely at first, and partial
// schedules that look alike share their value. Completions are sampled and scored by the ranking,
// which begins with the draft. The learned value predicts the best result that a partial schedule
// leads to (Steiner et al., MLSys 2021).
std::unique_ptr<SearchStrategy> MakeBeamSearch(SearchContext context,
                                               const BeamOptions& options = {});

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

struct QLearningOptions {
  absl::string_view name = "q-learning";
  // Where a walk starts: a measured candidate, with a probability proportional to
  // e^(−annealing · (best throughput − its throughput) / best throughput).
  double annealing = 10;
  double discount = 0.9;  // of the value of the next candidate
  double random = 0.1;    // probability of a random direction
  int hidden = 64;        // width of the three hidden layers
  int train_every = 5;    // results
  int warm_up = 16;       // draws before the first walk
};

// FlexTensor's search (Zheng et al., ASPLOS 2020). A walk starts at a good measured candidate and
// goes to one of its neighbours (the hops of site_values.h). A network of four fully connected
// layers per design space predicts for each direction the reward, which is the relative change of
// the throughput, plus the discounted value of the neighbour. Directions name the decisions that
// grow and shrink. It is trained after every fifth result by AdaDelta, as published; the widths,
// the discount and the temperature are ours. Uses neither a model nor the draft.
std::unique_ptr<SearchStrategy> MakeQLearningSearch(SearchContext context,
                                                    const QLearningOptions& options = {});

// Chooses which candidates an evolutionary search replays (EvolutionaryOptions::filter), with a
// model that reads schedules alone, such as tlp-fast: it scores a draw in a fraction of the time of
// a replay. It learns from the results of the search, from 32 on. `context` must outlive the
// filter.
std::unique_ptr<PointFilter> MakeScheduleFilter(const SearchContext& context, std::string model);

}  // namespace hone::search

#endif  // HONE_SERVER_RESEARCH_STRATEGY_STRATEGIES_H_
