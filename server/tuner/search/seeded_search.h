#ifndef HONE_SERVER_TUNER_SEARCH_SEEDED_SEARCH_H_
#define HONE_SERVER_TUNER_SEARCH_SEEDED_SEARCH_H_

#include <functional>
#include <memory>

#include "server/tuner/search/search_strategy.h"

namespace hone::search {

// Wraps the strategy that `make` creates: proposes context.seeds among the first proposals (see
// search_strategy.h), and the proposals of the inner strategy otherwise. The inner strategy is told
// all results. The name is that of the inner strategy.
std::unique_ptr<SearchStrategy> MakeSeededSearch(
    SearchContext context,
    const std::function<std::unique_ptr<SearchStrategy>(SearchContext)>& make);

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_SEEDED_SEARCH_H_
