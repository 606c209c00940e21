#include "server/job/search/draft_work.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/host_lock.h"
#include "common/base/seconds_text.h"
#include "common/base/status_macros.h"
#include "server/job/actor/executor.h"
#include "server/job/search/task_search.h"
#include "server/tuner/space/transfer.h"

namespace hone::job {
namespace {

constexpr int kRecordsPerPage = 1000;
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
    store::RecordQuery query{.target = target_key,
                             .op = workload.op,
                             .best_only = published,
                             .unpublished_best = !published,
                             .page_size = kRecordsPerPage};
    while (true) {
      HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, store.Query(query));
      for (const record::Record& record : page) {
        query.after_id = record.id;
        if (record.tolerance != tolerance || record.quarantined) continue;
        HONE_RETURN_IF_ERROR(check());
        HONE_ASSIGN_OR_RETURN(std::string text, store.GetText(record.workload_digest));
        const double distance = environment.Distance(workload.text, text);
        if (distance < space::kOtherForm) sources.push_back({record, std::move(text), distance});
      }
      if (static_cast<int>(page.size()) < kRecordsPerPage) break;
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

}  // namespace hone::job
