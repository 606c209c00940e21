#ifndef HONE_TESTS_SERVER_TUNER_SEARCH_RECORDED_H_
#define HONE_TESTS_SERVER_TUNER_SEARCH_RECORDED_H_

#include <string>

namespace hone::search {

// The progress of a search on a recorded set (tests/bench/recorded): latencies relative to the best
// known, as geometric means over the trials and the seeds.
struct Progress {
  double opening = 0;  // of the first 16 trials
  double late = 0;     // of trials 65 to 96
  double best = 0;     // of the best trial
};

// Runs 96 trials of a strategy with XGBoost for each of the seeds 1 to `seeds`.
Progress RunRecorded(const std::string& strategy, int seeds = 2,
                     const std::string& set = "conv2d_14x14x256");

}  // namespace hone::search

#endif  // HONE_TESTS_SERVER_TUNER_SEARCH_RECORDED_H_
