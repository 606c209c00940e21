#ifndef HONE_TESTS_SERVER_SEARCH_LEARNING_H_
#define HONE_TESTS_SERVER_SEARCH_LEARNING_H_

#include <string>
#include <vector>

#include "tests/server/search/spaces.h"

namespace hone::search {

// The best latency after each of `rounds` of 16 trials, with an XGBoost model that learns from
// them, on a device that the draft knows badly: the draft's time, times a factor per register tile
// and per tile of the reduction that the draft does not have, between 1 and 4.
std::vector<double> BestOf(const TestSpaces& spaces, const std::string& strategy_name,
                           uint64_t seed, int rounds);
// The last of it for a strategy over that for random draws, in geometric mean over the seeds 1 to
// `seeds`, in six rounds.
double AgainstRandom(const std::string& strategy_name, int seeds);

}  // namespace hone::search

#endif  // HONE_TESTS_SERVER_SEARCH_LEARNING_H_
