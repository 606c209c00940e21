#ifndef HONE_SERVER_SEARCH_SEEDED_SEARCH_H_
#define HONE_SERVER_SEARCH_SEEDED_SEARCH_H_

#include <functional>
#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

// A strategy whose first proposals hold context.seeds (search_strategy.h); the rest are those of
// the strategy that `make` gives, which is told everything. Its name is that of the inner one.
std::unique_ptr<SearchStrategy> MakeSeededSearch(
    SearchContext context,
    const std::function<std::unique_ptr<SearchStrategy>(SearchContext)>& make);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_SEEDED_SEARCH_H_
