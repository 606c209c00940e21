#ifndef HONE_SERVER_TUNER_COST_MODEL_METRIC_ERROR_H_
#define HONE_SERVER_TUNER_COST_MODEL_METRIC_ERROR_H_

#include "absl/types/span.h"

// Metrics of the difference between predicted and measured values. `mean` is predicted;
// `throughput` is measured, on the scale of CostModel::Update (0 to 1). Both have the same length.
// The result is NaN if they are empty.
namespace hone::cost_model {

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

#endif  // HONE_SERVER_TUNER_COST_MODEL_METRIC_ERROR_H_
