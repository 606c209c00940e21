#ifndef HONE_SERVER_COST_MODEL_VALIDATE_H_
#define HONE_SERVER_COST_MODEL_VALIDATE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// What models refuse, in one place. All are InvalidArgument, and the message names the first place
// that is wrong.

// row_begin does not describe the values, or a value is NaN or infinite. Where the features are
// read also: there are no columns, a candidate has no rows, or the rows are not as wide as
// `columns` (0: any).
absl::Status ValidateFeatures(const FeatureMatrix& features, bool read, int columns);

// Not one label per candidate, or one that is not finite or outside [0, 1].
absl::Status ValidateThroughput(const FeatureMatrix& features, absl::Span<const double> throughput);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_VALIDATE_H_
