#include "server/job/search/trainer.h"

#include "common/base/status_macros.h"
#include "server/job/search/plausible_latency.h"
#include "server/tuner/cost_model/stacked_model.h"

namespace hone::job {

absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> Trainer::TrainRelated() const {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost_model::CostModel> model,
                        environment_->CreateModel(model_, options_));
  const std::string feature_set(model->feature_set());
  cost_model::FeatureMatrix features;
  std::vector<double> scores;
  for (const Transfer::Space& space : transfer_->spaces) {
    const absl::StatusOr<std::vector<size_t>> appended =
        spaces_->AppendRelated(feature_set, space.text, space.decisions, &features);
    if (!appended.ok()) continue;
    for (const size_t i : *appended) scores.push_back(space.scores[i]);
  }
  if (scores.empty()) return nullptr;
  HONE_RETURN_IF_ERROR(model->Update(features, scores));
  return std::shared_ptr<const cost_model::CostModel>(std::move(model));
}

absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> Trainer::Train(
    absl::Span<const search::Measured> fresh) {
  if (transfer_ != nullptr) {
    if (cost_model::TransferWeight(fresh.size()) > 0) {
      HONE_ASSIGN_OR_RETURN(related_, TrainRelated());
    }
    transfer_.reset();
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost_model::CostModel> model,
                        environment_->CreateModel(model_, options_));
  const std::string feature_set(model->feature_set());
  if (related_ != nullptr) model = cost_model::MakeStackedModel(std::move(model), related_);
  for (const search::Measured& measured : fresh) {
    const bool ok = measured.outcome == record::Outcome::kOk;
    if (ok && !IsPlausibleLatency(measured.latency_ns)) continue;
    if (!spaces_->AppendFeatures(feature_set, measured.candidate, &features_).ok()) continue;
    latencies_.push_back(ok ? measured.latency_ns : 0);
  }
  double best = 0;
  for (double latency : latencies_) {
    if (latency > 0 && (best == 0 || latency < best)) best = latency;
  }
  std::vector<double> throughput;
  for (double latency : latencies_) throughput.push_back(latency > 0 ? best / latency : 0);
  HONE_RETURN_IF_ERROR(model->Update(features_, throughput));
  return std::shared_ptr<const cost_model::CostModel>(std::move(model));
}

}  // namespace hone::job
