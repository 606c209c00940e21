#ifndef HONE_SERVER_SEARCH_PORTFOLIO_SEARCH_H_
#define HONE_SERVER_SEARCH_PORTFOLIO_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

struct PortfolioOptions {
  double memory = 0.9;  // what a batch leaves of the weight of earlier rewards
  double close = 0.4;   // log latency above the best at which a candidate earns nothing
  int learnt = 8;       // results that the opening needs before cells are drawn by Thompson
  int opening = 16;     // results after which the bandit decides
};

// Other strategies under a bandit. They share all results, and each says what it would measure
// next:
//   evolutionary  opens: the best candidate of every design space by the draft, then the best;
//   bayesian      learns how far the draft is off per design space (the cells) and draws by
//   Thompson; droplet       hops to neighbouring divisors of the best: the finishing descent.
// After the opening – until `learnt` results the first, then the second, hops from the third up to
// `opening` – every place of a batch goes to a strategy by a Thompson draw of its reward: half for
// being close to the best, half for beating it. Candidates that two strategies want are measured
// once.
std::unique_ptr<SearchStrategy> MakePortfolioSearch(SearchContext context,
                                                    const PortfolioOptions& options = {});

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_PORTFOLIO_SEARCH_H_
