#ifndef HONE_TESTS_SERVER_TUNER_SEARCH_OTHER_MACHINE_H_
#define HONE_TESTS_SERVER_TUNER_SEARCH_OTHER_MACHINE_H_

#include <string>

namespace hone::search {

// The progress of a search: latencies relative to the best of several thousand draws, as geometric
// means over the trials and the seeds.
struct Progress {
  double opening = 0;  // of the first 16 trials
  double late = 0;     // of trials 65 to 96
  double best = 0;     // of the best trial
};

// Runs 96 trials of a strategy with XGBoost for each of the seeds 1 to `seeds`, in the design
// spaces of the rules, on a simulated machine: forks, loads and lines from the caches cost several
// times what the draft says, and a third of the candidates take 20 % longer for no reason that
// features show. `op`: "conv2d" or "matmul".
Progress RunOnOtherMachine(const std::string& strategy, int seeds = 2,
                           const std::string& op = "conv2d");

}  // namespace hone::search

#endif  // HONE_TESTS_SERVER_TUNER_SEARCH_OTHER_MACHINE_H_
