#include "server/job/search/learned_draft.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/tuner/cost_model/model_file.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

constexpr size_t kMostForeign = 4;

// The mean difference between the logarithms of what is known of both targets.
double Unlikeness(const target::Target& a, const target::Target& b) {
  double sum = 0, count = 0;
  const auto compare = [&](double x, double y) {
    if (x <= 0 || y <= 0) return;
    sum += std::abs(std::log(x / y));
    ++count;
  };
  for (const target::CalibrationField& field : target::CalibrationFields())
    compare(a.calibration.*field.value, b.calibration.*field.value);
  compare(a.cores, b.cores);
  compare(a.vector_bits, b.vector_bits);
  compare(static_cast<double>(a.l1_bytes), static_cast<double>(b.l1_bytes));
  compare(static_cast<double>(a.l2_bytes), static_cast<double>(b.l2_bytes));
  return sum / count;  // every target has cores
}

// Returns whether a saved model differs from the constants of its target.
bool HasLearned(const std::string& bytes) {
  const absl::StatusOr<cost_model::ModelHeader> header = cost_model::ReadModelHeader(bytes);
  return header.ok() && header->columns > 0;
}

// Returns whether a model was itself taken from another target.
bool IsForeign(const store::ModelRow& row) {
  const auto metrics = nlohmann::json::parse(row.metrics, nullptr, /*allow_exceptions=*/false);
  return metrics.is_object() && metrics.value("is_foreign", nlohmann::json()) == true;
}

}  // namespace

absl::StatusOr<int64_t> NewestDraft(store::Store& store, const std::string& target_key) {
  const absl::StatusOr<store::ModelRow> row =
      store.GetModel({.name = kLearnedDraft, .feature_set = kLearnedDraft, .target = target_key});
  if (row.ok()) return row->id;
  if (absl::IsNotFound(row.status())) return 0;
  return row.status();
}

std::shared_ptr<const cost_model::CostModel> LoadDraft(store::Store& store,
                                                       const TaskEnvironment& environment,
                                                       int64_t id) {
  if (id == 0) return nullptr;
  const absl::StatusOr<store::ModelRow> row = store.GetModelById(id);
  absl::Status status = row.status();
  if (row.ok()) {
    absl::StatusOr<std::unique_ptr<cost_model::CostModel>> model =
        environment.CreateModel(kLearnedDraft, {});
    status = model.status();
    if (status.ok()) status = (*model)->Load(row->bytes);
    if (status.ok()) return HasLearned(row->bytes) ? *std::move(model) : nullptr;
  }
  spdlog::warn("the learned draft {} is not used: {}", id, std::string(status.message()));
  return nullptr;
}

std::vector<std::string> ForeignDrafts(store::Store& store, const std::string& target_key,
                                       const std::string& target_text) {
  const absl::StatusOr<target::Target> target = target::Target::FromText(target_text);
  const auto rows = store.ListModels(kLearnedDraft, /*target=*/"");
  if (!target.ok() || !rows.ok()) return {};
  const std::string here = store.Identity().value_or("");
  std::vector<std::pair<double, int64_t>> nearest;
  for (const store::ModelRow& row : *rows) {
    // A model that came back has seen this server's records, too.
    const bool own = row.origin.empty() || (!here.empty() && absl::StrContains(row.origin, here));
    if ((row.key.target == target_key && own) || !row.key.scope.empty() || IsForeign(row)) continue;
    const absl::StatusOr<target::Target> other = target::Target::FromText(row.target_text);
    if (!other.ok() || other->kind != target->kind || other->arch != target->arch) continue;
    nearest.emplace_back(Unlikeness(*target, *other), row.id);
  }
  std::sort(nearest.begin(), nearest.end());
  std::vector<std::string> drafts;
  for (const auto& [unlikeness, id] : nearest) {
    absl::StatusOr<store::ModelRow> row = store.GetModelById(id);
    if (row.ok() && HasLearned(row->bytes)) drafts.push_back(std::move(row->bytes));
    if (drafts.size() == kMostForeign) break;
  }
  return drafts;
}

}  // namespace hone::job
