#ifndef HONE_SERVER_SEARCH_PUBLISHED_GRID_SEARCH_H_
#define HONE_SERVER_SEARCH_PUBLISHED_GRID_SEARCH_H_

#include <memory>

#include "server/search/search_strategy.h"

namespace hone::search {

// AutoTVM's GridSearchTuner: enumerates decision vectors in lexicographic order of the lists of
// site_values.h, the last site fastest, design spaces in turn. Looks at no model, no draft and no
// seed: two searches of the same spaces propose the same. Where a long stretch of the order holds
// no legal candidate, and for what the lists leave out, it takes uniform draws.
std::unique_ptr<SearchStrategy> MakeGridSearch(SearchContext context);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_PUBLISHED_GRID_SEARCH_H_
