#ifndef HONE_SERVER_TUNER_COST_MODEL_COST_MODEL_H_
#define HONE_SERVER_TUNER_COST_MODEL_COST_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::cost_model {

// The feature rows of several candidates in one array. A candidate has one or more rows (for
// example one per statement of its program). Candidate i owns rows [row_begin[i], row_begin[i +
// 1]).
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

// What was measured, one value per candidate.
struct Labels {
  // The best latency of the task divided by the candidate's latency, in (0, 1], or 0 if the
  // candidate failed.
  absl::Span<const double> throughput;
  // Numbers of the candidates' tasks; empty: all are of one task. Throughputs of different tasks
  // cannot be compared.
  absl::Span<const int32_t> tasks = {};
  // Numbers of the targets on which the candidates were measured; empty: all on target 0, for which
  // a model predicts. Results of different targets never have the same task. A model without a
  // separate part for each target learns from all of them as if they were of one.
  absl::Span<const int32_t> targets = {};
  // What is known of the candidates already, as logarithms of their speed up to a constant of the
  // task; empty: nothing. A model then learns what is missing: Predict returns the logarithm to add
  // to a candidate's offset.
  absl::Span<const double> offset = {};
  int32_t TaskOf(size_t candidate) const { return tasks.empty() ? 0 : tasks[candidate]; }
  int32_t TargetOf(size_t candidate) const { return targets.empty() ? 0 : targets[candidate]; }
};

// The result of Predict, with one value per candidate. Higher is better.
struct Prediction {
  std::vector<double> mean;
  std::vector<double> spread;  // empty if the model has none
};

// Predicts how good candidates are. One instance per task. No other call may run during Update or
// Load. Predict and Save do not change the model and may run in several threads at once. To train
// in the background, the owner updates a second instance and then replaces the first (see
// server/job).
//
// Deterministic: predictions depend only on the options, the last Update and the argument.
class CostModel {
 public:
  virtual ~CostModel() = default;

  // The registered name.
  virtual absl::string_view name() const = 0;
  // The feature set of the rows, such as "statement". "" for a model that reads no features; its
  // matrices may have no columns and no rows.
  virtual absl::string_view feature_set() const = 0;

  // Trains on exactly these candidates and forgets all earlier ones. They replace the old ones
  // because labels are relative to the best latency so far: when the best improves, every label
  // changes. Without candidates, the model becomes untrained.
  // InvalidArgument: sizes differ, a value is not finite, or a label is outside [0, 1]; the message
  // names the first such value. Or labels have offsets, and the model cannot learn a residual. An
  // error leaves the model unchanged.
  virtual absl::Status Update(const FeatureMatrix& features, const Labels& labels) = 0;
  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) {
    return Update(features, Labels{throughput});
  }

  // Returns one score per candidate. An untrained model that reads features returns zeros, except
  // `analytic`, which estimates without measurements (models.h). InvalidArgument: the columns
  // differ from those of the last Update, a candidate has no rows although the model reads
  // features, or a value is not finite.
  virtual absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const = 0;

  // Returns what the model has learned as a JSON object, for people; "{}": nothing to tell.
  virtual std::string Summary() const { return "{}"; }

  // Convert to and from a versioned binary form. Load replaces everything except the options.
  // InvalidArgument: the bytes are of another model, version or feature set, truncated or damaged;
  // the message says which. An error leaves the model unchanged.
  virtual absl::StatusOr<std::string> Save() const = 0;
  virtual absl::Status Load(absl::string_view bytes) = 0;
};

struct CostModelOptions {
  uint64_t seed = 0;
  // The name of the feature set to read; "": the model's default. Models that know the meaning of
  // columns (`analytic`, `formula`) and models that read no features accept no other.
  std::string feature_set;
  // Threads of Update, at least 1. The trained model may depend on their number. Predict runs in
  // the caller's thread. Use more than 1 only on otherwise idle cores: XGBoost's threads spin at
  // barriers, and two of them on a loaded machine take 5 to 100 times as long as one.
  int threads = 1;
  // Saved models of the same kind that learned on other machines. `residual` becomes one of them if
  // it orders the training tasks better than what it can learn from them; other models ignore them.
  std::vector<std::string> foreign;
  // Called between the rounds of a long training, which an error ends; null: nothing can end it.
  std::function<absl::Status()> pause;
};

// Creates a model by its registered name. NotFound: unknown name; the message lists the names.
// InvalidArgument: fewer than one thread, or a feature set that the model cannot read.
// FailedPrecondition: the model is not in this build.
absl::StatusOr<std::unique_ptr<CostModel>> CreateCostModel(absl::string_view name,
                                                           const CostModelOptions& options);
std::vector<std::string> CostModelNames();

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_COST_MODEL_H_
