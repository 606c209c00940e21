#ifndef HONE_SERVER_COST_MODEL_VALIDATE_H_
#define HONE_SERVER_COST_MODEL_VALIDATE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// What models refuse, in one place. All are InvalidArgument, and the message names the first place
// that is wrong.

// row_begin does not describe the values.
absl::Status ValidateShape(const FeatureMatrix& features);

// A value is NaN or infinite. REQUIRES a valid shape.
absl::Status ValidateFinite(const FeatureMatrix& features);

// Both, and for models that read features: there are no columns, or a candidate has no rows.
absl::Status ValidateFeatures(const FeatureMatrix& features);

// Rows of a Predict that are not as wide as those of the last Update.
absl::Status ValidateColumns(const FeatureMatrix& features, int trained_columns);

// Not one label per candidate, or one that is not finite or outside [0, 1].
absl::Status ValidateThroughput(const FeatureMatrix& features, absl::Span<const double> throughput);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_VALIDATE_H_
