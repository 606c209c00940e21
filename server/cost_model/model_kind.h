#ifndef HONE_SERVER_COST_MODEL_MODEL_KIND_H_
#define HONE_SERVER_COST_MODEL_MODEL_KIND_H_

#include <memory>
#include <type_traits>
#include <vector>

#include "server/cost_model/byte_io.h"
#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// What one model knows. Every Update and Load begins with a fresh predictor, so that a call that
// fails leaves the model as it was. Const calls are thread-safe.
class Predictor {
 public:
  virtual ~Predictor() = default;

  // REQUIRES a fresh predictor, valid rows and labels (validate.h), at least one candidate.
  virtual absl::Status Train(const FeatureMatrix& features,
                             absl::Span<const double> throughput) = 0;
  // The binary form inside a model file, and back. REQUIRES a fresh predictor for Parse.
  // InvalidArgument: truncated or contradictory.
  virtual void Serialize(ByteWriter& writer) const = 0;
  virtual absl::Status Parse(ByteReader& reader) = 0;

  // Of the rows that it was trained on; 0: it has seen nothing.
  virtual int columns() const = 0;
  // See CostModel. REQUIRES valid rows of columns() columns, or of those of its kind.
  virtual absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const = 0;
  virtual std::vector<double> RowScores(const FeatureMatrix&) const { return {}; }
};

// One line of the registry.
struct ModelKind {
  absl::string_view name;
  uint32_t version = 1;           // of the payload of its files
  absl::string_view feature_set;  // its own; "": it reads no features
  // Null: not in this build.
  std::unique_ptr<Predictor> (*make)(const CostModelOptions& options) = nullptr;
  // The columns of its feature set, for a kind that knows what they mean: its predictors also
  // answer when they have seen nothing. 0: it learns from any columns, and answers zeros then.
  int columns = 0;
  bool any_features = true;        // also learns from other sets (CostModelOptions::feature_set)
  bool has_spread = false;         // fills Prediction::spread once it is trained
  absl::string_view missing = "";  // what this build lacks for it, and how to get it
};

// For ModelKind::make.
template <typename T>
std::unique_ptr<Predictor> MakePredictor(const CostModelOptions& options) {
  if constexpr (std::is_default_constructible_v<T>)
    return std::make_unique<T>();
  else
    return std::make_unique<T>(options);
}

// A model of a kind: refuses bad input, and saves and loads under the name of the kind.
std::unique_ptr<CostModel> MakeModel(const ModelKind& kind, const CostModelOptions& options = {});

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_MODEL_KIND_H_
