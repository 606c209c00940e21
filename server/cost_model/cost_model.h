#ifndef HONE_SERVER_COST_MODEL_COST_MODEL_H_
#define HONE_SERVER_COST_MODEL_COST_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::cost_model {

// Feature rows of several candidates in flat memory. A candidate has one or more rows (one per
// statement of its program); candidate i owns rows [row_begin[i], row_begin[i + 1]).
struct FeatureMatrix {
  int columns = 0;
  std::vector<float> values;          // rows × columns, row-major
  std::vector<int32_t> row_begin{0};  // candidates + 1 entries

  int candidates() const { return static_cast<int>(row_begin.size()) - 1; }
  int rows() const { return row_begin.back(); }
  // Adds a candidate with `rows` of `columns` values each. REQUIRES values.size() == rows ×
  // columns.
  void Append(absl::Span<const float> candidate_values, int candidate_rows) {
    values.insert(values.end(), candidate_values.begin(), candidate_values.end());
    row_begin.push_back(row_begin.back() + candidate_rows);
  }
  absl::Span<const float> row(int r) const {
    return absl::MakeConstSpan(values).subspan(static_cast<size_t>(r) * columns, columns);
  }
};

// What Predict answers per candidate. Higher is better.
struct Prediction {
  std::vector<double> mean;
  std::vector<double> spread;  // empty where the model has none
};

// Predicts how good candidates are. One instance per task. Update and Load exclude every other
// call; Predict and Save are pure and may run in several threads at once. To train off the critical
// path the owner updates a second instance and swaps it in (see server/task).
//
// Deterministic: equal options and an equal last Update give equal predictions, on any number of
// calls.
class CostModel {
 public:
  virtual ~CostModel() = default;

  // The registered name.
  virtual absl::string_view name() const = 0;
  // The feature set that the rows must be of ("statement"); "" for a model that reads none (its
  // matrices may have no columns and no rows).
  virtual absl::string_view feature_set() const = 0;

  // Trains on exactly these candidates and forgets all earlier ones. The set is replaced and not
  // added to because labels are relative to the best latency so far: when the best improves, every
  // label changes. `throughput[i]`: best latency of the task over the candidate's latency, in (0,
  // 1]; 0 for a failed one. No candidates: the model has seen nothing. InvalidArgument: sizes
  // differ, or a value is not finite or a label outside [0, 1]; the message names the first one.
  // After an error the model is as it was.
  virtual absl::Status Update(const FeatureMatrix& features,
                              absl::Span<const double> throughput) = 0;

  // Scores, one per candidate. A model that has seen nothing answers zeros, but `analytic` what it
  // expects without measurements (analytic_model.h). InvalidArgument: the columns are not those of
  // the last Update, a candidate has no rows (where the model reads features), or a value is not
  // finite.
  virtual absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const = 0;

  // What each row adds to its candidate's mean, where the model is such a sum (Ansor's pack-sum):
  // one number per row, which over the rows of a candidate sum up to its mean less a constant that
  // is the same for all candidates. Empty: the mean of this model is no such sum, or it has seen
  // nothing. Errors as of Predict.
  virtual absl::StatusOr<std::vector<double>> RowScores(const FeatureMatrix& features) const {
    (void)features;
    return std::vector<double>();
  }

  // A versioned binary form, and back. Load replaces everything but the options. InvalidArgument:
  // not of this model, version or feature set, truncated or damaged; the message says which. After
  // an error the model is as it was.
  virtual absl::StatusOr<std::string> Save() const = 0;
  virtual absl::Status Load(absl::string_view bytes) = 0;
};

struct CostModelOptions {
  uint64_t seed = 0;
  // The feature set to read instead of the model's own, by name; "": its own. Models that know what
  // columns mean (`analytic`, `formula`) or read none take no other.
  std::string feature_set;
  // Of Update, at least 1; what it learns may depend on their number. Predict runs in the caller's.
  // More than 1 only on cores that nothing else uses: XGBoost's threads spin at barriers, and
  // beside any other load two of them take 5 to 100 times as long as one.
  int threads = 1;
};

// Creates a model by its registered name. NotFound: no such model; the message lists the names.
// InvalidArgument: no threads, or a feature set that the model does not read.
absl::StatusOr<std::unique_ptr<CostModel>> CreateCostModel(absl::string_view name,
                                                           const CostModelOptions& options);
std::vector<std::string> CostModelNames();

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_COST_MODEL_H_
