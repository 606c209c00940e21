#ifndef HONE_SERVER_TUNER_COST_MODEL_METRIC_RANKING_H_
#define HONE_SERVER_TUNER_COST_MODEL_METRIC_RANKING_H_

#include <vector>

#include "absl/types/span.h"

// Metrics of how well scores order candidates. `score` is predicted, higher is better; `throughput`
// is measured, 0 for a failed candidate. Both belong to one task and have the same length. Equal
// scores are ordered as the candidates are. Every metric is between 0 and 1 (best), or NaN if there
// is nothing to compare.
namespace hone::cost_model {

// A task of a network, for TopK.
struct RankedTask {
  std::vector<double> score;
  std::vector<double> latency_ns;  // measured; 0: failed, counts as the slowest
  double weight = 1;               // how often the task occurs in the network
};

// Returns top-k as TenSet and TLP define it: the network's time if each task runs its fastest
// candidate, divided by its time if each task runs the fastest of its k best-scored candidates.
// Tasks without a measurement are left out.
double TopK(absl::Span<const RankedTask> tasks, int k);

// Measures how soon good candidates are found if they are measured in the order of their scores.
// Returns the mean, over the first k candidates (or all if there are fewer), of the best throughput
// so far divided by the best throughput of all.
double PeakAtK(absl::Span<const double> score, absl::Span<const double> throughput, int k);

// Returns the share of the k fastest candidates that are among the k with the best scores.
double RecallAtK(absl::Span<const double> score, absl::Span<const double> throughput, int k);

// Returns the share of pairs in the right order, among those whose throughput differs by more than
// `least_difference`. A pair with equal scores counts as half a pair.
double PairwiseAccuracy(absl::Span<const double> score, absl::Span<const double> throughput,
                        double least_difference = 0);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_METRIC_RANKING_H_
