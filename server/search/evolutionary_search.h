#ifndef HONE_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_
#define HONE_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "server/search/search_strategy.h"

namespace hone::search {

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
// higher. Where that is nobody new another partner is asked, in the end the child is a mutation. In
// spaces with one group, with a model that does not score statements on their own
// (CostModel::RowScores), and before it has learnt, each site comes from either parent at random.
// The first generation holds the best
// measured ones (up to 20 %), survivors of the last call, and random draws (at least 50). The best
// unseen of all generations are proposed, and 5 % random draws.
//
// Scores are those of ranking.h: without the draft the first candidates are random, as published.
// The first batch covers
// every design space that has a candidate; while a space is untried no other one fills more than
// half of a batch.
std::unique_ptr<SearchStrategy> MakeEvolutionarySearch(SearchContext context,
                                                       const EvolutionaryOptions& options = {});

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_
