#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/job/actor/job_actor.h"

namespace hone::job {
namespace {

std::vector<fleet::WorkerInfo> AllWorkers(const JobServices& services) {
  return services.known_workers != nullptr ? services.known_workers() : services.fleet->Workers();
}

std::vector<fleet::WorkerInfo> RunnersOf(const JobActor& job) {
  std::vector<fleet::WorkerInfo> workers = AllWorkers(job.services());
  std::erase_if(workers, [&](const fleet::WorkerInfo& worker) {
    return !worker.capabilities.can_run || worker.capabilities.target_key != job.spec().target_key;
  });
  return workers;
}

bool AnyTakesWork(const std::vector<fleet::WorkerInfo>& workers) {
  return std::any_of(workers.begin(), workers.end(), std::mem_fn(&fleet::WorkerInfo::TakesWork));
}

std::string StateOf(const fleet::WorkerInfo& worker, absl::Time now) {
  if (!worker.flagged.empty()) return absl::StrCat(worker.id, " is refused: ", worker.flagged);
  if (worker.drained) return absl::StrCat(worker.id, " is drained");
  if (worker.silent == absl::InfiniteDuration()) return absl::StrCat(worker.id, " is away");
  return absl::StrCat(worker.id, worker.stopping ? " was stopped at " : " was last seen at ",
                      TimeText(now - worker.silent));
}

std::string SilenceOf(const fleet::WorkerInfo& worker, absl::Time now) {
  return absl::StrCat("worker ", worker.id, " has not answered since ",
                      TimeText(now - worker.silent));
}

// Explains that none of `workers`, which could do the work, takes it. `does`: "runs target x".
// `where`: the machine on which to start a worker if the list is empty.
std::string NoneTakesWork(const std::vector<fleet::WorkerInfo>& workers, absl::string_view does,
                          absl::string_view where, absl::Time now) {
  if (workers.empty()) {
    return absl::StrCat("no worker ", does, "; unless one is starting, start hone-worker on ",
                        where);
  }
  std::vector<std::string> states, advice, held_back, away;
  for (const fleet::WorkerInfo& worker : workers) {
    states.push_back(StateOf(worker, now));
    (worker.drained || !worker.flagged.empty() ? held_back : away).push_back(worker.id);
  }
  std::string text = absl::StrCat("no worker ", does, ": ", absl::StrJoin(states, ", "));
  if (!away.empty()) {
    advice.push_back(absl::StrCat("start hone-worker on the machine of ", away[0], " again"));
  }
  // The state of a removed worker already has this advice.
  if (!held_back.empty() && !absl::StrContains(text, fleet::ResumeCommand(held_back[0]))) {
    advice.push_back(fleet::HowToResume(held_back[0]));
  }
  if (!advice.empty()) absl::StrAppend(&text, "; ", absl::StrJoin(advice, ", or "));
  return text;
}

std::string WhyNoWorker(const JobActor& job, const std::vector<fleet::WorkerInfo>& runners) {
  if (!AnyTakesWork(runners)) {
    return NoneTakesWork(runners, absl::StrCat("runs target ", job.spec().target_key),
                         "such a machine", job.Now());
  }
  std::vector<fleet::WorkerInfo> builders = AllWorkers(job.services());
  const std::string& target = job.spec().target_key;
  std::erase_if(builders,
                [&](const auto& worker) { return !worker.capabilities.BuildsFor(target); });
  if (AnyTakesWork(builders)) return "";
  return NoneTakesWork(builders, absl::StrCat("builds for target ", target),
                       "a machine with hone-builder", job.Now());
}

}  // namespace

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S %Z", time, absl::LocalTimeZone());
}

bool WorkerAnswers(const JobActor& job) {
  return job.WorkersMayCall() || AnyTakesWork(RunnersOf(job));
}

std::string WhyNoWorker(const JobActor& job) {
  // Asked often, for every job.
  if (job.services().fleet->IsServed(job.spec().target_key)) return "";
  return WhyNoWorker(job, RunnersOf(job));
}

std::string WhyWorkIsSilent(const JobActor& job) {
  const std::optional<fleet::SilentWork> silent = job.services().fleet->FindSilentWork(job.id());
  if (!silent.has_value() || !silent->is_all) return "";
  return absl::StrCat(SilenceOf(silent->worker, job.Now()),
                      "; unless it does soon, another worker gets its work");
}

JobPhase SilentWork(const JobActor& job) {
  const std::optional<fleet::SilentWork> silent = job.services().fleet->FindSilentWork(job.id());
  if (!silent.has_value()) return {};
  return {.kind = PhaseKind::kMeasuringWithout,
          .detail = SilenceOf(silent->worker, job.Now()),
          .done = silent->items};
}

std::string WhyUnmeasured(const JobActor& job) {
  const std::string nothing = "nothing was measured: ";
  const std::vector<fleet::WorkerInfo> runners = RunnersOf(job);
  if (const std::string why = WhyNoWorker(job, runners); !why.empty()) return nothing + why;
  const auto runner =
      std::find_if(runners.begin(), runners.end(), std::mem_fn(&fleet::WorkerInfo::TakesWork));
  return absl::StrCat(nothing, "the first candidate was not proposed, built and timed within the ",
                      absl::ToInt64Seconds(job.Wall()),
                      " s of the job; give it more time, or stop other work on the machines of the "
                      "server and of worker ",
                      runner->id);
}

bool IsOfTheSurroundings(const absl::Status& why) {
  return absl::IsFailedPrecondition(why) || absl::IsUnavailable(why) ||
         absl::IsResourceExhausted(why);
}

std::string ResumeAdvice(const JobSnapshot& job, absl::string_view why) {
  const JobSpec& spec = job.spec;
  if (!job.is_resumable || spec.unpublished || !spec.parent.empty()) return "";
  std::string command = absl::StrCat("\"hone jobs resume ", job.id);
  if (absl::StrContains(why, command)) return "";
  if (spec.max_time > absl::ZeroDuration() && job.CountedWall() >= spec.max_time) {
    const absl::Duration more = absl::Ceil(2 * job.CountedWall(), absl::Seconds(1));
    absl::StrAppend(&command, " --time ", absl::ToInt64Seconds(more), "s");
  }
  return absl::StrCat("; ", command, "\" continues it");
}

}  // namespace hone::job
