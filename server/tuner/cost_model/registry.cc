#include "server/tuner/cost_model/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "server/tuner/cost_model/models.h"

namespace hone::cost_model {
namespace {

std::vector<const ModelKind*>& Kinds() {
  static auto* const kinds = new std::vector<const ModelKind*>{
      &kRandomModel,
      &kDraftModel,
      &kResidualModel,
      &kXgboostModel,
  };
  return *kinds;
}

class RandomPredictor final : public Predictor {
 public:
  explicit RandomPredictor(const CostModelOptions& options) : seed_(options.seed) {}

  absl::Status Train(const FeatureMatrix&, const Labels& labels) override {
    trained_on_ = labels.throughput.size();
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

void RegisterCostModel(const ModelKind& kind) { Kinds().push_back(&kind); }

absl::StatusOr<std::unique_ptr<CostModel>> CreateCostModel(absl::string_view name,
                                                           const CostModelOptions& options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cost model needs at least one thread, not ", options.threads));
  }
  for (const ModelKind* kind : Kinds()) {
    if (kind->name != name) continue;
    if (kind->make == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("cost model '", name, "' is not in this build: ", kind->missing));
    }
    if (!kind->any_features && !options.feature_set.empty() &&
        options.feature_set != kind->feature_set) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cost model '", name, "' reads ",
          kind->feature_set.empty() ? std::string("no features")
                                    : absl::StrCat("only feature set '", kind->feature_set, "'"),
          ", not '", options.feature_set, "'"));
    }
    return MakeModel(*kind, options);
  }
  return absl::NotFoundError(absl::StrCat("no cost model '", name,
                                          "'; there are: ", absl::StrJoin(CostModelNames(), ", ")));
}

std::vector<std::string> CostModelNames() {
  std::vector<std::string> names;
  for (const ModelKind* kind : Kinds()) {
    if (kind->make != nullptr) names.emplace_back(kind->name);
  }
  return names;
}

std::vector<CostModelInfo> CostModelInfos() {
  std::vector<CostModelInfo> infos;
  for (const ModelKind* kind : Kinds()) {
    infos.push_back({std::string(kind->name), std::string(kind->feature_set), kind->any_features,
                     kind->has_spread, std::string(kind->missing)});
  }
  return infos;
}

constexpr ModelKind kRandomModel = {
    .name = "random", .make = MakePredictor<RandomPredictor>, .any_features = false};

}  // namespace hone::cost_model
