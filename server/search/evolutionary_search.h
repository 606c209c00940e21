#ifndef HONE_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_
#define HONE_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

// Ansor's evolutionary search (Zheng et al., OSDI 2020) over all design spaces at once. A Propose
// evolves a population of context.population candidates over three generations: parents by roulette
// on max(score, 0), a mutation with probability 0.85, else a crossover of two parents of one space
// (which the paper describes and its code lacks). The first generation holds the best measured ones
// (up to 20 %), survivors of the last call, and random draws (at least 50). The best unseen of all
// generations are proposed, and 5 % random draws.
//
// Scores are those of ranking.h, so that without a model, or with one that has learnt little, the
// analytic draft leads. The first batch covers every design space that has a candidate; while a
// space is untried no other one fills more than half of a batch.
std::unique_ptr<SearchStrategy> MakeEvolutionarySearch(SearchContext context);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_
