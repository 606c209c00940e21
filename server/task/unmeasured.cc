#include "server/task/unmeasured.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hone::task {
namespace {

// A worker calls every second while it is busy, and its call is held while it is not. The fleet
// counts a silent worker as lost only later.
constexpr absl::Duration kRecently = absl::Seconds(5);

bool Answers(const fleet::WorkerInfo& worker) {
  return worker.connected && !worker.drained && !worker.stopping && worker.flagged.empty() &&
         worker.silent < kRecently;
}

std::vector<fleet::WorkerInfo> RunnersOf(const JobActor& job) {
  std::vector<fleet::WorkerInfo> workers = job.services().fleet->Workers();
  std::erase_if(workers, [&](const fleet::WorkerInfo& worker) {
    return !worker.capabilities.can_run || worker.capabilities.target_key != job.spec().target_key;
  });
  return workers;
}

std::string SecondsText(absl::Duration time) {
  return absl::StrFormat("%.0f s", absl::ToDoubleSeconds(time));
}

std::string StateOf(const fleet::WorkerInfo& worker, absl::Time now) {
  if (!worker.flagged.empty()) return absl::StrCat(worker.id, " is refused: ", worker.flagged);
  if (worker.drained) return absl::StrCat(worker.id, " is drained");
  return absl::StrCat(worker.id, worker.stopping ? " was stopped " : " was last seen ",
                      SecondsText(worker.silent), " ago, at ",
                      absl::FormatTime("%H:%M:%S", now - worker.silent, absl::LocalTimeZone()));
}

// Returns a message about `workers`, which could do the work but do not answer.
std::string NoneAnswers(const std::vector<fleet::WorkerInfo>& workers, absl::string_view does,
                        absl::Time now) {
  if (workers.empty()) return absl::StrCat("no worker ", does, "; start hone-worker");
  std::vector<std::string> states;
  bool held_back = false, away = false;
  for (const fleet::WorkerInfo& worker : workers) {
    states.push_back(StateOf(worker, now));
    (worker.drained || !worker.flagged.empty() ? held_back : away) = true;
  }
  return absl::StrCat("no worker that ", does, " answers: ", absl::StrJoin(states, ", "),
                      away ? "; start hone-worker there again" : "",
                      held_back ? "; \"hone workers resume NAME\" gives it work again" : "");
}

std::string WhyNoWorker(const JobActor& job, const std::vector<fleet::WorkerInfo>& runners) {
  if (std::none_of(runners.begin(), runners.end(), Answers)) {
    return NoneAnswers(runners, absl::StrCat("runs target ", job.spec().target_key), job.Now());
  }
  std::vector<fleet::WorkerInfo> builders = job.services().fleet->Workers();
  std::erase_if(builders, [](const auto& worker) { return !worker.capabilities.can_build; });
  if (std::any_of(builders.begin(), builders.end(), Answers)) return "";
  return NoneAnswers(builders, "builds kernels", job.Now());
}

}  // namespace

bool WorkerAnswers(const JobActor& job) {
  const std::vector<fleet::WorkerInfo> runners = RunnersOf(job);
  return std::any_of(runners.begin(), runners.end(), Answers);
}

std::string WhyNoWorker(const JobActor& job) { return WhyNoWorker(job, RunnersOf(job)); }

std::string WhyUnmeasured(const JobActor& job) {
  const std::string nothing = "nothing was measured: ";
  const std::vector<fleet::WorkerInfo> runners = RunnersOf(job);
  if (const std::string why = WhyNoWorker(job, runners); !why.empty()) return nothing + why;
  const auto runner = std::find_if(runners.begin(), runners.end(), Answers);
  return absl::StrCat(nothing, "worker ", runner->id,
                      " had not built and timed the first candidate when the job ended after ",
                      SecondsText(job.Wall()),
                      "; give it more time, or stop other work on that machine");
}

}  // namespace hone::task
