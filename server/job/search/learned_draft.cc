#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/job/search/draft_work.h"
#include "server/tuner/cost_model/model_file.h"
#include "spdlog/spdlog.h"

// The shipped draft, which CMakeLists.txt names.
asm(R"(
.section .rodata
.balign 8
hone_shipped_draft_begin:
.incbin ")" HONE_SHIPPED_DRAFT R"("
hone_shipped_draft_end:
.byte 0
.previous
)");
extern "C" const char hone_shipped_draft_begin[], hone_shipped_draft_end[];

namespace hone::job {
namespace {

constexpr size_t kMostForeign = 4;

// The architecture that the shipped draft was learned on.
bool IsShippedArchitecture(const target::Target& target) {
  return target.kind == target::Kind::kCpu && target.arch == "x86_64";
}

absl::string_view ShippedBytes() {
  return {hone_shipped_draft_begin,
          static_cast<size_t>(hone_shipped_draft_end - hone_shipped_draft_begin)};
}

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

absl::string_view ShippedDraft(const target::Target& target) {
  const bool was_measured = IsShippedArchitecture(target) && target.vector_bits == 256;
  return was_measured ? ShippedBytes() : "";
}

std::shared_ptr<const cost_model::CostModel> LoadDraft(store::Store* store,
                                                       const TaskEnvironment& environment,
                                                       int64_t id, const std::string& target_text) {
  const auto load =
      [&](absl::string_view bytes) -> absl::StatusOr<std::unique_ptr<cost_model::CostModel>> {
    if (!HasLearned(std::string(bytes))) return nullptr;
    HONE_ASSIGN_OR_RETURN(auto model, environment.CreateModel(kLearnedDraft, {}));
    HONE_RETURN_IF_ERROR(model->Load(std::string(bytes)));
    return model;
  };
  absl::StatusOr<std::unique_ptr<cost_model::CostModel>> model = nullptr;
  if (id != 0) {
    const absl::StatusOr<store::ModelRow> row = store->GetModelById(id);
    model = row.ok() ? load(row->bytes) : row.status();
  } else if (const auto target = target::Target::FromText(target_text); target.ok()) {
    if (const absl::string_view bytes = ShippedDraft(*target); !bytes.empty()) model = load(bytes);
  }
  if (model.ok()) return *std::move(model);
  spdlog::warn("the learned draft {} is not used: {}", id, std::string(model.status().message()));
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
  if (IsShippedArchitecture(*target)) drafts.emplace_back(ShippedBytes());
  return drafts;
}

}  // namespace hone::job
