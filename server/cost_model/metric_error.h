#ifndef HONE_SERVER_COST_MODEL_METRIC_ERROR_H_
#define HONE_SERVER_COST_MODEL_METRIC_ERROR_H_

#include "absl/types/span.h"

// How far predictions lie from what was measured. `mean`: predicted; `throughput`: measured, on the
// scale of CostModel::Update (0 to 1). Of the same length; not a number where it is 0.
namespace hone::cost_model {

// The root of the mean squared error.
double Rmse(absl::Span<const double> mean, absl::Span<const double> throughput);

// Expected calibration error: candidates in order of their prediction, in `bins` groups of equal
// size (fewer where there are not so many); the mean over all of how far their group's mean
// prediction is from its mean throughput. 0: what is predicted is what comes, on average, at every
// level.
double CalibrationError(absl::Span<const double> mean, absl::Span<const double> throughput,
                        int bins = 10);

// The share of candidates within `spreads` spreads of their prediction: 0.683 of 1 and 0.954 of 2
// where errors are normal and the spread is honest.
double Coverage(absl::Span<const double> mean, absl::Span<const double> spread,
                absl::Span<const double> throughput, double spreads);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_METRIC_ERROR_H_
