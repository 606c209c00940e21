#include "common/base/digest.h"
#include "common/base/rng.h"
#include "server/tuner/cost_model/models.h"

namespace hone::cost_model {
namespace {

class RandomPredictor final : public Predictor {
 public:
  explicit RandomPredictor(const CostModelOptions& options) : seed_(options.seed) {}

  absl::Status Train(const FeatureMatrix&, absl::Span<const double> throughput) override {
    trained_on_ = throughput.size();
    return absl::OkStatus();
  }

  int columns() const override { return 0; }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction{.mean = std::vector<double>(features.candidates(), 0.0)};
    if (trained_on_ == 0) return prediction;
    for (int i = 0; i < features.candidates(); ++i) {
      const size_t begin = static_cast<size_t>(features.row_begin[i]) * features.columns;
      const size_t end = static_cast<size_t>(features.row_begin[i + 1]) * features.columns;
      const absl::string_view rows(reinterpret_cast<const char*>(features.values.data() + begin),
                                   (end - begin) * sizeof(float));
      prediction.mean[i] = Rng(seed_, trained_on_, i, DigestOf(rows).low).Uniform();
    }
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override { writer.Add<uint64_t>(trained_on_); }
  absl::Status Parse(ByteReader& reader) override { return reader.Read(trained_on_); }

 private:
  const uint64_t seed_;
  uint64_t trained_on_ = 0;
};

}  // namespace

constexpr ModelKind kRandomModel = {
    .name = "random", .make = MakePredictor<RandomPredictor>, .any_features = false};

}  // namespace hone::cost_model
