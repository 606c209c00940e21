#include "server/lab/joint_trainer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/rng.h"
#include "common/base/status_macros.h"

namespace hone::lab {
namespace {

constexpr uint64_t kDrawPurpose = 17;

}  // namespace

absl::Status JointTrainer::Add(size_t workload, const task::TaskSpaces& spaces,
                               absl::Span<const search::Measured> results) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> model,
                        environment_->CreateModel(model_, options_));
  const std::string feature_set(model->feature_set());
  for (const search::Measured& measured : results) {
    if (!spaces.AppendFeatures(feature_set, measured.candidate, &features_).ok()) continue;
    workloads_.push_back(workload);
    latencies_.push_back(measured.outcome == record::Outcome::kOk ? measured.latency_ns : 0);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> JointTrainer::Train() const {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost_model::CostModel> model,
                        environment_->CreateModel(model_, options_));
  std::map<size_t, double> best;
  for (size_t i = 0; i < latencies_.size(); ++i) {
    if (latencies_[i] <= 0) continue;
    const auto [entry, fresh] = best.emplace(workloads_[i], latencies_[i]);
    if (!fresh) entry->second = std::min(entry->second, latencies_[i]);
  }
  std::vector<double> throughput;
  for (size_t i = 0; i < latencies_.size(); ++i) {
    throughput.push_back(latencies_[i] > 0 ? best.at(workloads_[i]) / latencies_[i] : 0);
  }
  HONE_RETURN_IF_ERROR(model->Update(features_, throughput));
  return std::shared_ptr<const cost_model::CostModel>(std::move(model));
}

std::vector<search::Measured> DrawResults(std::vector<search::Measured> results, size_t count,
                                          uint64_t seed) {
  Rng rng(seed, kDrawPurpose);
  for (size_t i = results.size(); i > 1; --i) std::swap(results[i - 1], results[rng.Below(i)]);
  results.resize(std::min(results.size(), count));
  return results;
}

}  // namespace hone::lab
