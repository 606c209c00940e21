#ifndef HONE_CLIENT_CLI_NETWORK_REPEATED_RUNS_H_
#define HONE_CLIENT_CLI_NETWORK_REPEATED_RUNS_H_

#include <vector>

#include "client/network/plan/runner.h"

namespace hone::cli {

// The times of repeated runs of a network, and of the steps of a typical run.
class RepeatedRuns {
 public:
  // The steps of at most this many runs are kept, because they need much more memory than the time
  // of a run.
  static constexpr size_t kMostSteps = 1000;

  void Add(double run_ns, std::vector<network::StepTime> steps);

  // The time of the run that takes longer than this share of the runs, in nanoseconds; 0.5: the
  // median. REQUIRES: a run was added.
  double At(double share) const;
  // The times of all runs together.
  double SumNs() const;
  // The steps of the run with the median time; with more than kMostSteps runs, of the first ones
  // that which is nearest to the median. REQUIRES: a run was added.
  const std::vector<network::StepTime>& MedianSteps() const;

 private:
  std::vector<double> runs_ns_;
  std::vector<std::vector<network::StepTime>> steps_;  // of the first runs
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_REPEATED_RUNS_H_
