#include "server/job/search/draft_work.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/host_lock.h"
#include "common/base/seconds_text.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "nlohmann/json.hpp"
#include "server/job/actor/executor.h"
#include "server/job/search/task_search.h"
#include "server/tuner/cost_model/model_file.h"
#include "server/tuner/space/transfer.h"
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

constexpr int kTries = 8;  // maximum number of sources to adapt

struct Source {
  record::Record record;
  std::string workload;
  double distance = 0;
};

absl::StatusOr<std::vector<Source>> FindSources(store::Store& store,
                                                const TaskEnvironment& environment,
                                                const WorkloadInfo& workload,
                                                const std::string& target_key, double tolerance,
                                                const StopCheck& check) {
  std::vector<Source> sources;
  for (const bool published : {true, false}) {
    std::vector<record::Record> records;
    const auto add = [&](const record::Record& record) {
      if (record.tolerance == tolerance && !record.quarantined) records.push_back(record);
    };
    HONE_RETURN_IF_ERROR(store.ForEachRecord({.target = target_key,
                                              .op = workload.op,
                                              .best_only = published,
                                              .unpublished_best = !published},
                                             add, check));
    for (record::Record& record : records) {
      HONE_RETURN_IF_ERROR(check());
      HONE_ASSIGN_OR_RETURN(std::string text, store.GetText(record.workload_digest));
      const double distance = environment.Distance(workload.text, text);
      if (distance >= space::kOtherForm) continue;
      sources.push_back({std::move(record), std::move(text), distance});
    }
  }
  std::stable_sort(sources.begin(), sources.end(),
                   [](const Source& a, const Source& b) { return a.distance < b.distance; });
  return sources;
}

// Adapts a candidate to these spaces. Also returns the text of its space.
absl::StatusOr<NearestBest> AdaptIn(const TaskSpaces& spaces, const std::string& space,
                                    const std::vector<int64_t>& decisions) {
  NearestBest nearest;
  HONE_ASSIGN_OR_RETURN(nearest.candidate, spaces.Adapt(space, decisions));
  for (const SpaceInfo& info : spaces.spaces()) {
    if (info.digest == nearest.candidate.space_digest) nearest.space = info.text;
  }
  return nearest;
}

absl::StatusOr<NearestBest> FindNearest(store::Store& store, const TaskEnvironment& environment,
                                        const WorkloadInfo& workload, const std::string& target_key,
                                        const std::string& target_text, double tolerance,
                                        const StopCheck& check) {
  HONE_ASSIGN_OR_RETURN(std::vector<Source> sources,
                        FindSources(store, environment, workload, target_key, tolerance, check));
  const absl::Status none = absl::NotFoundError(
      absl::StrCat("no best of any ", workload.op, " of the same form is known on ", target_key));
  if (sources.empty()) return none;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TaskSpaces> rules,
                        environment.Open(workload.text, target_text, "", tolerance, check));
  int tries = 0;
  for (Source& source : sources) {
    if (++tries > kTries) break;
    HONE_RETURN_IF_ERROR(check());
    HONE_ASSIGN_OR_RETURN(std::string space, store.GetText(source.record.candidate.space_digest));
    const std::vector<int64_t>& decisions = source.record.candidate.decisions;
    absl::StatusOr<NearestBest> nearest = AdaptIn(*rules, space, decisions);
    if (!nearest.ok()) {
      // No rule makes this trace; it was, for example, written by hand. It is used without a design
      // space.
      const auto transplanted = environment.Transplant(workload.text, space);
      if (!transplanted.ok()) continue;
      const auto given =
          environment.Open(workload.text, target_text, *transplanted, tolerance, check);
      if (!given.ok()) continue;
      nearest = AdaptIn(**given, space, decisions);
    }
    if (!nearest.ok()) continue;
    nearest->distance = source.distance;
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo info, environment.Describe(source.workload));
    nearest->flops = info.flops;
    nearest->source = {std::move(source.record), std::move(source.workload), std::move(space)};
    return nearest;
  }
  return none;
}

absl::Status Stopped() { return absl::UnavailableError("the server is shutting down"); }

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

void DraftWork::Draft(JobSpec spec, StopCheck check, Done answer) {
  if (stopped_) return std::move(answer)(Stopped());
  if (++in_progress_ > kMaxAtOnce) {
    --in_progress_;
    return std::move(answer)(absl::ResourceExhaustedError(
        absl::StrCat(kMaxAtOnce, " drafts are in progress; try again later")));
  }
  Done done = [this, answer = std::move(answer)](absl::StatusOr<std::string> trace) mutable {
    --in_progress_;
    std::move(answer)(std::move(trace));
  };
  services_.executor->Schedule(
      [this, spec = std::move(spec), check = std::move(check), done = std::move(done)]() mutable {
        const StopCheck stop = [this, &check] {
          if (stopped_) return Stopped();
          return check == nullptr ? absl::OkStatus() : check();
        };
        if (absl::Status ended = stop(); !ended.ok()) return std::move(done)(std::move(ended));
        absl::StatusOr<std::string> trace;
        const absl::Status thrown = CatchExceptions([&] {
          const HostShare share(options_.respect_timing_lock);
          trace = FirstTrace(spec, stop);
        });
        if (!thrown.ok()) trace = thrown;
        std::move(done)(std::move(trace));
      });
}

absl::StatusOr<NearestBest> DraftWork::Nearest(const WorkloadInfo& workload,
                                               const std::string& target_key,
                                               const std::string& target_text, double tolerance,
                                               const StopCheck& check) const {
  if (workload.text.size() > kMostNearestBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the workload has ", workload.text.size(),
                                                   " bytes, and schedules are adapted to workloads",
                                                   " of at most ", kMostNearestBytes, "; tune it"));
  }
  const absl::Time deadline = services_.SteadyNow() + kNearestLimit;
  const StopCheck stop = [&]() -> absl::Status {
    if (stopped_) return Stopped();
    if (services_.SteadyNow() > deadline) {
      return absl::ResourceExhaustedError(
          absl::StrCat("adapting a schedule to this workload takes longer than ",
                       SecondsText(kNearestLimit), "; tune it"));
    }
    return check == nullptr ? absl::OkStatus() : check();
  };
  return FindNearest(*services_.store, *services_.environment, workload, target_key, target_text,
                     tolerance, stop);
}

absl::StatusOr<std::string> DraftWork::FirstTrace(const JobSpec& spec, StopCheck check) const {
  const TaskEnvironment& environment = *services_.environment;
  int64_t newest = 0;
  if (services_.store != nullptr) {
    HONE_ASSIGN_OR_RETURN(newest, NewestDraft(*services_.store, spec.target_key));
  }
  std::shared_ptr<const cost_model::CostModel> draft =
      LoadDraft(services_.store, environment, newest, spec.target);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TaskSpaces> spaces,
                        environment.Open(spec.workload, spec.target, spec.space, spec.tolerance,
                                         std::move(check), std::move(draft)));
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<TaskSearch> search,
      TaskSearch::Create(&environment, spaces.get(), SearchOptionsOf(spec), /*prior=*/{}));
  HONE_RETURN_IF_ERROR(search->Propose(BatchSizeOf(spec, options_)).status());
  if (search->trials().empty()) {
    return absl::FailedPreconditionError(
        "no schedule of the design spaces is legal for the workload on the target");
  }
  const record::Candidate& first = search->trials().begin()->second;
  for (const SpaceInfo& space : spaces->spaces()) {
    if (space.digest != first.space_digest) continue;
    return environment.TraceText(space.text, first.decisions);
  }
  return absl::InternalError("the search proposed a candidate of an unknown design space");
}

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
