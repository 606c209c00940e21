#ifndef HONE_SERVER_TUNER_COST_MODEL_METRIC_H_
#define HONE_SERVER_TUNER_COST_MODEL_METRIC_H_

#include <vector>

#include "absl/types/span.h"

namespace hone::cost_model {

// Metrics of how well scores order candidates. `score` is predicted, higher is better; `throughput`
// is measured, 0 for a failed candidate. Both belong to one task and have the same length. Equal
// scores are ordered as the candidates are. Every metric is between 0 and 1 (best), or NaN if there
// is nothing to compare.

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

// Returns the mean of RecallAtK for k = 1 … n, or up to the number of candidates if there are
// fewer: AutoTVM's a-recall@n.
double AverageRecall(absl::Span<const double> score, absl::Span<const double> throughput, int n);

// Returns the share of pairs in the right order, among those whose throughput differs by more than
// `least_difference`. A pair with equal scores counts as half a pair.
double PairwiseAccuracy(absl::Span<const double> score, absl::Span<const double> throughput,
                        double least_difference = 0);

// Metrics of the difference between predicted and measured values. `mean` is predicted;
// `throughput` is measured, on the scale of CostModel::Update (0 to 1). Both have the same length.
// The result is NaN if they are empty.

// Returns the root mean squared error.
double Rmse(absl::Span<const double> mean, absl::Span<const double> throughput);

// Returns the expected calibration error. The candidates are sorted by prediction and divided into
// at most `bins` groups of equal size. The error of a candidate is the difference between its
// group's mean prediction and mean throughput; the result is the mean over all candidates. 0: at
// every level, predictions are right on average.
double CalibrationError(absl::Span<const double> mean, absl::Span<const double> throughput,
                        int bins = 10);

// Returns the share of candidates whose throughput is within `spreads` spreads of the prediction.
// If errors are normally distributed and the spread is right, it is 0.683 for 1 and 0.954 for 2.
double Coverage(absl::Span<const double> mean, absl::Span<const double> spread,
                absl::Span<const double> throughput, double spreads);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_METRIC_H_
