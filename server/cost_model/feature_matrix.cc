#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

void FeatureMatrix::Append(absl::Span<const float> candidate_values, int candidate_rows) {
  values.insert(values.end(), candidate_values.begin(), candidate_values.end());
  row_begin.push_back(row_begin.back() + candidate_rows);
}

}  // namespace hone::cost_model
