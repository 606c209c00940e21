#ifndef HONE_SERVER_TUNER_COST_MODEL_VALIDATE_H_
#define HONE_SERVER_TUNER_COST_MODEL_VALIDATE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/cost_model.h"

namespace hone::cost_model {

// Checks of the input of models. All errors are InvalidArgument; the message names the first wrong
// position.

// InvalidArgument: row_begin does not match the values, or a value is NaN or infinite. If `read` is
// set, also: there are no columns, a candidate has no rows, or the number of columns is not
// `columns` (0: any).
absl::Status ValidateFeatures(const FeatureMatrix& features, bool read, int columns);

// InvalidArgument: the number of labels is not the number of candidates, or a label is not in [0,
// 1].
absl::Status ValidateThroughput(const FeatureMatrix& features, absl::Span<const double> throughput);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_VALIDATE_H_
