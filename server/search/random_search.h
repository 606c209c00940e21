#ifndef HONE_SERVER_SEARCH_RANDOM_SEARCH_H_
#define HONE_SERVER_SEARCH_RANDOM_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

// Uniform draws, untried design spaces first: the baseline. Looks at no model and no draft.
std::unique_ptr<SearchStrategy> MakeRandomSearch(SearchContext context);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_RANDOM_SEARCH_H_
