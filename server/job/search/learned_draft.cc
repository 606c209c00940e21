#include "server/job/search/learned_draft.h"

#include <utility>

#include "spdlog/spdlog.h"

namespace hone::job {

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
    if (status.ok()) return *std::move(model);
  }
  spdlog::warn("the learned draft {} is not used: {}", id, std::string(status.message()));
  return nullptr;
}

}  // namespace hone::job
