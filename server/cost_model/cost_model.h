#ifndef HONE_SERVER_COST_MODEL_COST_MODEL_H_
#define HONE_SERVER_COST_MODEL_COST_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include "absl/strings/string_view.h"
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hone::cost_model {

// Feature rows of several candidates in flat memory. A candidate has one or more rows (one per statement of its program);
// candidate i owns rows [row_begin[i], row_begin[i + 1]).
struct FeatureMatrix {
  int columns = 0;
  std::vector<float> values;          // rows × columns, row-major
  std::vector<int32_t> row_begin{0};  // candidates + 1 entries

  int candidates() const { return static_cast<int>(row_begin.size()) - 1; }
  int rows() const { return row_begin.back(); }
  // Adds a candidate with `rows` of `columns` values each. REQUIRES values.size() == rows × columns.
  void Append(absl::Span<const float> candidate_values, int candidate_rows);
};

// What Predict answers per candidate. Higher is better.
struct Prediction {
  std::vector<double> mean;
  std::vector<double> spread;  // empty where the model has none
};

// Predicts how good candidates are. One instance per task; Update and Predict are called by one thread at a time, but a
// trained model may be swapped in from a background thread by its owner (see server/task).
class CostModel {
 public:
  virtual ~CostModel() = default;

  // The registered name.
  virtual absl::string_view name() const = 0;
  // The feature set that the rows must be of ("statement"); "" for a model that reads none.
  virtual absl::string_view feature_set() const = 0;

  // Adds measured candidates and retrains. `throughput[i]`: best latency of the task over the candidate's latency at the
  // time of the call, in (0, 1]; 0 for a failed one. InvalidArgument: sizes differ, a value is not finite or outside
  // [0, 1], or the columns differ from earlier calls.
  virtual absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) = 0;

  // Scores. A model that has seen nothing answers zeros.
  virtual absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const = 0;

  // A versioned binary form, and back. InvalidArgument: not of this model, version or feature set; the message says which.
  virtual absl::StatusOr<std::string> Save() const = 0;
  virtual absl::Status Load(absl::string_view bytes) = 0;
};

struct CostModelOptions {
  uint64_t seed = 0;
  int threads = 1;
};

// Creates a model by its registered name. NotFound: lists the names.
absl::StatusOr<std::unique_ptr<CostModel>> CreateCostModel(absl::string_view name, const CostModelOptions& options);
std::vector<std::string> CostModelNames();

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_COST_MODEL_H_
