#include "client/cli/network/network_kernels.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/tune/running_job.h"
#include "client/connection/program_call.h"
#include "common/base/status_macros.h"
#include "common/target/host.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

absl::StatusOr<network::NetworkKernel> LoadBest(Session& session, const v1::Best& best) {
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ArtifactOf(session, best));
  HONE_ASSIGN_OR_RETURN(network::NetworkKernel kernel, network::LoadKernel(artifact));
  kernel.latency_ns = best.latency_ns();
  return kernel;
}

absl::Status NoTimeToBuild() {
  return absl::DeadlineExceededError(
      "there was no time left to build the kernels of tasks without a confirmed schedule");
}

// The kernel of a task that is built here.
struct KernelBuild {
  size_t task = 0;
  std::string title;
  ScheduleSource source = ScheduleSource::kDraft;
  std::string trace;
  std::string target;  // text form
  absl::StatusOr<client::BuiltKernel> built = NoTimeToBuild();
};

// Builds on all cores, with the progress on standard error.
void BuildAll(std::vector<KernelBuild>& builds, size_t tasks, absl::Time deadline,
              ProgressLine& progress) {
  std::atomic<size_t> next = 0;
  const auto work = [&](bool shows) {
    for (size_t i = next++; i < builds.size(); i = next++) {
      KernelBuild& build = builds[i];
      if (absl::Now() >= deadline) {
        build.built = NoTimeToBuild();
        continue;
      }
      if (shows) {
        progress.Show(absl::StrCat("generating the code of task ", build.task + 1, " of ", tasks,
                                   ", ", build.title));
      }
      build.built = client::BuildKernel(build.trace, build.target);
    }
  };
  const size_t threads = std::min(static_cast<size_t>(target::UsableCores()), builds.size());
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work, /*shows=*/false);
  work(/*shows=*/true);
  for (std::thread& other : others) other.join();
}

class KernelLoader {
 public:
  KernelLoader(Session& session, const std::vector<WorkloadArgument>& tasks, std::string target,
               double tolerance, absl::Time deadline)
      : session_(session),
        tasks_(tasks),
        target_(std::move(target)),
        tolerance_(tolerance),
        deadline_(deadline),
        only_key_(!target::Target::FromText(target_).ok()) {}

  absl::StatusOr<NetworkKernels> Load(absl::Span<const TaskSchedule> schedules) {
    std::vector<KernelBuild> builds;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      if (schedules[t].source == ScheduleSource::kConfirmed) continue;
      HONE_ASSIGN_OR_RETURN(builds.emplace_back(), PrepareBuild(t, schedules[t]));
    }
    BuildAll(builds, tasks_.size(), deadline_, progress_);
    NetworkKernels kernels;
    auto build = builds.begin();
    for (size_t t = 0; t < tasks_.size(); ++t) {
      const TaskSchedule& schedule = schedules[t];
      if (schedule.source == ScheduleSource::kConfirmed) {
        HONE_ASSIGN_OR_RETURN(kernels.list.emplace_back(), LoadBest(session_, *schedule.best));
        kernels.counts.Add(schedule.source);
        continue;
      }
      HONE_ASSIGN_OR_RETURN(kernels.list.emplace_back(),
                            LoadBuilt(*build++, schedule, kernels.counts));
    }
    return kernels;
  }

 private:
  absl::StatusOr<KernelBuild> PrepareBuild(size_t task, const TaskSchedule& schedule) {
    // Drafts tell the text form of a target of which only the key is known.
    if (schedule.source == ScheduleSource::kDraft || only_key_) return PrepareDraft(task);
    return KernelBuild{.task = task,
                       .title = tasks_[task].title,
                       .source = schedule.source,
                       .trace = schedule.best->trace(),
                       .target = target_};
  }

  absl::StatusOr<KernelBuild> PrepareDraft(size_t task) {
    if (absl::Now() >= deadline_) return NoTimeToBuild();
    progress_.Show(absl::StrCat("building a schedule for task ", task + 1, " of ", tasks_.size(),
                                ", ", tasks_[task].title));
    HONE_ASSIGN_OR_RETURN(
        const v1::DraftedSchedule drafted,
        session_.connection().DraftSchedule(tasks_[task].text, target_, tolerance_));
    if (std::exchange(only_key_, false)) target_ = drafted.target();
    return KernelBuild{.task = task,
                       .title = tasks_[task].title,
                       .trace = drafted.trace(),
                       .target = drafted.target()};
  }

  absl::StatusOr<network::NetworkKernel> LoadBuilt(KernelBuild& build, const TaskSchedule& schedule,
                                                   ScheduleCounts& counts) {
    if (!build.built.ok() && build.source == ScheduleSource::kMeasured &&
        !absl::IsDeadlineExceeded(build.built.status())) {
      // The trace of an older version may be stale.
      HONE_ASSIGN_OR_RETURN(build, PrepareDraft(build.task));
      build.built = client::BuildKernel(build.trace, build.target);
    }
    HONE_RETURN_IF_ERROR(build.built.status());
    HONE_ASSIGN_OR_RETURN(network::NetworkKernel kernel,
                          network::LoadKernel(build.built->artifact));
    counts.Add(build.source);
    const bool is_draft = build.source == ScheduleSource::kDraft;
    if (!is_draft) kernel.latency_ns = schedule.best->latency_ns();
    // The output of the same bytes was checked when they were measured.
    if (is_draft || build.built->digest != schedule.best->record().result().artifact_digest()) {
      ++counts.unchecked;
    }
    return kernel;
  }

  Session& session_;
  const std::vector<WorkloadArgument>& tasks_;
  std::string target_;
  const double tolerance_;
  const absl::Time deadline_;
  bool only_key_;
  ProgressLine progress_;
};

std::vector<std::string> DigestsOfUnknown(const NetworkArgument& network,
                                          absl::Span<const TaskSchedule> schedules) {
  std::vector<std::string> digests;
  for (size_t t = 0; t < schedules.size(); ++t) {
    if (schedules[t].source == ScheduleSource::kConfirmed) continue;
    digests.push_back(network.tasks[t].workload.StructuralDigest().ToHex());
  }
  return digests;
}

}  // namespace

absl::string_view ScheduleSourceName(ScheduleSource source) {
  switch (source) {
    case ScheduleSource::kConfirmed:
      return "confirmed";
    case ScheduleSource::kMeasured:
      return "measured";
    case ScheduleSource::kDraft:
      return "draft";
  }
  return "";
}

void ScheduleCounts::Add(ScheduleSource source) {
  ++(source == ScheduleSource::kConfirmed  ? confirmed
     : source == ScheduleSource::kMeasured ? measured
                                           : draft);
}

void ScheduleCounts::Add(const ScheduleCounts& others) {
  confirmed += others.confirmed;
  measured += others.measured;
  draft += others.draft;
  unchecked += others.unchecked;
}

std::string UnconfirmedText(const ScheduleCounts& counts) {
  const int64_t without = counts.measured + counts.draft;
  if (without == 0) return "";
  const int64_t tasks = without + counts.confirmed;
  const auto uses = [](int64_t count) { return count == 1 ? " uses " : " use "; };
  std::vector<std::string> parts;
  if (counts.measured > 0) {
    parts.push_back(absl::StrCat(counts.measured, uses(counts.measured), "the best measured one"));
  }
  if (counts.draft > 0) {
    parts.push_back(
        absl::StrCat(counts.draft, parts.empty() ? uses(counts.draft) : " ", "the draft's"));
  }
  std::string text = absl::StrCat(without, " of ", tasks, tasks == 1 ? " task" : " tasks",
                                  without == 1 ? " has" : " have",
                                  " no confirmed schedule: ", absl::StrJoin(parts, ", "));
  if (counts.unchecked > 0) {
    absl::StrAppend(&text, "; the output of ", counts.unchecked, " of them was not checked");
  }
  return text;
}

Json ToJson(const ScheduleCounts& counts) {
  return {{"confirmed", counts.confirmed},
          {"measured", counts.measured},
          {"draft", counts.draft},
          {"unchecked", counts.unchecked}};
}

absl::StatusOr<std::vector<TaskSchedule>> FindSchedules(Session& session,
                                                        const std::vector<WorkloadArgument>& tasks,
                                                        double tolerance) {
  HONE_ASSIGN_OR_RETURN(std::string key, session.TargetKey());
  UnconfirmedJobs jobs(session, std::move(key), tolerance, std::numeric_limits<int>::max());
  std::vector<TaskSchedule> schedules;
  const auto add = [&](const WorkloadArgument& task, const std::optional<v1::Best>& best) {
    TaskSchedule& schedule = schedules.emplace_back();
    if (best.has_value()) {
      schedule = {.source = ScheduleSource::kConfirmed, .best = best};
      return absl::OkStatus();
    }
    Unconfirmed found = jobs.Find(task);
    schedule.job = std::move(found.job);
    schedule.best = std::move(found.measured);
    if (schedule.best.has_value()) schedule.source = ScheduleSource::kMeasured;
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(VisitBests(session, tasks, tolerance, /*nearest=*/false, add).status());
  return schedules;
}

ScheduleCounts CountSchedules(absl::Span<const TaskSchedule> schedules) {
  ScheduleCounts counts;
  for (const TaskSchedule& schedule : schedules) counts.Add(schedule.source);
  return counts;
}

void AddDraft(Command& command, bool& draft) {
  command.AddFlag("--draft", draft,
                  "Run or export the network even if nothing of it was tuned, with the schedules "
                  "that a search would begin with; nothing is measured");
}

absl::StatusOr<NetworkKernels> LoadNetworkKernels(Session& session, const NetworkArgument& network,
                                                  const NetworkKernelOptions& options) {
  HONE_RETURN_IF_ERROR(CheckUnchanged(network));
  HONE_ASSIGN_OR_RETURN(const std::vector<TaskSchedule> schedules,
                        FindSchedules(session, network.tasks, options.tolerance));
  const ScheduleCounts counts = CountSchedules(schedules);
  const bool suffices = options.only_confirmed ? counts.measured + counts.draft == 0
                                               : options.draft || counts.AnyMeasured();
  if (!suffices) {
    const std::vector<std::string> unknown = DigestsOfUnknown(network, schedules);
    HONE_ASSIGN_OR_RETURN(const std::string key, session.TargetKey());
    if (options.only_confirmed || !WasTuned(session, unknown, key, options.tolerance)) {
      HONE_RETURN_IF_ERROR(CheckNetworkKnown(
          network, unknown.size(), key, options.tolerance,
          FindRunningJob(session, unknown, key, options.tolerance), options.hint));
    }
  }
  HONE_ASSIGN_OR_RETURN(std::string target, session.TargetText());
  return KernelLoader(session, network.tasks, std::move(target), options.tolerance,
                      options.deadline)
      .Load(schedules);
}

absl::StatusOr<NetworkKernels> LoadOrDraftKernels(Session& session,
                                                  const std::vector<WorkloadArgument>& tasks,
                                                  double tolerance, absl::Time deadline) {
  HONE_ASSIGN_OR_RETURN(const std::vector<TaskSchedule> schedules,
                        FindSchedules(session, tasks, tolerance));
  HONE_ASSIGN_OR_RETURN(std::string target, session.TargetText());
  return KernelLoader(session, tasks, std::move(target), tolerance, deadline).Load(schedules);
}

void PrintUnconfirmed(const ScheduleCounts& counts) {
  const std::string text = UnconfirmedText(counts);
  if (!text.empty()) PrintWrapped(stderr, text);
}

double SumOfKernels(const NetworkArgument& network,
                    absl::Span<const network::NetworkKernel> kernels) {
  double sum = 0;
  for (size_t t = 0; t < kernels.size(); ++t) {
    if (!(kernels[t].latency_ns > 0)) return 0;
    sum += static_cast<double>(network.partition.tasks[t].weight) * kernels[t].latency_ns;
  }
  return sum;
}

}  // namespace hone::cli
