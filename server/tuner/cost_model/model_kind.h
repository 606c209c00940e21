#ifndef HONE_SERVER_TUNER_COST_MODEL_MODEL_KIND_H_
#define HONE_SERVER_TUNER_COST_MODEL_MODEL_KIND_H_

#include <memory>
#include <type_traits>

#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/cost_model.h"

namespace hone::cost_model {

// The trained state of a model. Every Update and Load begins with a new predictor, so a failed call
// leaves the model unchanged. Const calls are thread-safe.
class Predictor {
 public:
  virtual ~Predictor() = default;

  // REQUIRES: a new predictor, valid rows and labels, and at least one candidate.
  virtual absl::Status Train(const FeatureMatrix& features, const Labels& labels) = 0;
  // Convert to and from the binary form inside a model file. REQUIRES for Parse: a new predictor.
  // InvalidArgument: truncated or inconsistent.
  virtual void Serialize(ByteWriter& writer) const = 0;
  virtual absl::Status Parse(ByteReader& reader) = 0;

  // See CostModel.
  virtual std::string Summary() const { return "{}"; }

  // The number of columns of the training rows; 0: untrained.
  virtual int columns() const = 0;
  // See CostModel. REQUIRES: valid rows with columns() columns, or with ModelKind::columns columns.
  virtual absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const = 0;
};

// An entry of the registry.
struct ModelKind {
  absl::string_view name;
  uint32_t version = 1;           // of the payload of its files
  absl::string_view feature_set;  // the default; "": reads no features
  // Creates a predictor. Null: the model is not in this build.
  std::unique_ptr<Predictor> (*make)(const CostModelOptions& options) = nullptr;
  // The number of columns of its feature set, if the kind knows what they mean; its untrained
  // predictors can then predict. 0: it learns from any columns, and untrained models return zeros.
  int columns = 0;
  bool any_features = true;        // accepts CostModelOptions::feature_set
  bool has_spread = false;         // fills Prediction::spread once trained
  bool learns_residual = false;    // accepts Labels::offset
  absl::string_view missing = "";  // what this build lacks and how to get it
};

// For ModelKind::make.
template <typename T>
std::unique_ptr<Predictor> MakePredictor(const CostModelOptions& options) {
  if constexpr (std::is_default_constructible_v<T>)
    return std::make_unique<T>();
  else
    return std::make_unique<T>(options);
}

// Makes a model of a kind. It validates input, and saves and loads files with the kind's name.
std::unique_ptr<CostModel> MakeModel(const ModelKind& kind, const CostModelOptions& options = {});

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_MODEL_KIND_H_
