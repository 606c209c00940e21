#include "server/cost_model/random_model.h"

#include <cstddef>
#include <utility>

#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/validate.h"

namespace hone::cost_model {
namespace {

class RandomModel final : public CostModel {
 public:
  explicit RandomModel(uint64_t seed) : seed_(seed) {}

  absl::string_view name() const override { return "random"; }
  absl::string_view feature_set() const override { return ""; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateShape(features));
    HONE_RETURN_IF_ERROR(ValidateFinite(features));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    trained_on_ = throughput.size();
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateShape(features));
    HONE_RETURN_IF_ERROR(ValidateFinite(features));
    Prediction prediction;
    prediction.mean.assign(features.candidates(), 0.0);
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

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    writer.AddU64(trained_on_);
    return EncodeModel(Header(), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header()));
    ByteReader reader(file.payload);
    HONE_ASSIGN_OR_RETURN(trained_on_, reader.U64());
    return absl::OkStatus();
  }

 private:
  static ModelHeader Header() { return {.name = "random", .version = 1}; }

  uint64_t seed_;
  uint64_t trained_on_ = 0;
};

}  // namespace

std::unique_ptr<CostModel> MakeRandomModel(const CostModelOptions& options) {
  return std::make_unique<RandomModel>(options.seed);
}

}  // namespace hone::cost_model
