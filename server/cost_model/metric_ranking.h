#ifndef HONE_SERVER_COST_MODEL_METRIC_RANKING_H_
#define HONE_SERVER_COST_MODEL_METRIC_RANKING_H_

#include <vector>

#include "absl/types/span.h"

// How well scores order candidates. `score`: predicted, higher is better; `throughput`: measured, 0
// for a failed candidate. Both of the same length and of one task; equal scores count in the order
// of the candidates. Every metric is from 0 to 1, 1 the best; not a number where there is nothing
// to compare.
namespace hone::cost_model {

// A task of a network as top-k sees it.
struct RankedTask {
  std::vector<double> score;
  std::vector<double> latency_ns;  // measured; 0: it failed, and costs as much as the slowest
  double weight = 1;               // how often the network has the task
};

// Top-k of TenSet and TLP: the time of a network whose tasks all run their fastest candidate, over
// its time when each runs the fastest of the k that the model likes best. Tasks without a
// measurement are left out.
double TopK(absl::Span<const RankedTask> tasks, int k);

// The mean over the first k picks (fewer where there are not so many) of the best throughput so far
// over the best of all: how soon good candidates come when they are measured in the model's order.
double PeakAtK(absl::Span<const double> score, absl::Span<const double> throughput, int k);

// The share of the k best candidates that are among the k which the model likes best.
double RecallAtK(absl::Span<const double> score, absl::Span<const double> throughput, int k);

// The share of pairs in the right order, among those whose throughput differs by more than
// `least_difference`; equal scores are half right, as a coin is.
double PairwiseAccuracy(absl::Span<const double> score, absl::Span<const double> throughput,
                        double least_difference = 0);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_METRIC_RANKING_H_
