#include "client/cli/fleet/worker_text.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/output/format.h"
#include "client/cli/suggested_command.h"
#include "common/base/counted.h"

namespace hone::cli {
namespace {

using Predicate = std::function<bool(const v1::WorkerInfo&)>;

bool TakesWork(const v1::WorkerInfo& worker) {
  return worker.connected() && !worker.draining() && !worker.stopping() && !worker.silent() &&
         worker.flagged().empty();
}

std::string ResumeCommand(const std::string& worker) {
  return SuggestedAdminCommand(absl::StrCat("workers resume ", ShellWord(worker)));
}

std::string HowToResume(const std::string& worker) {
  return absl::StrCat("an administrator gives it work again with ", ResumeCommand(worker));
}

// Why a worker takes no work, and what helps.
std::string WhyIdle(const v1::WorkerInfo& worker) {
  const std::string resume = HowToResume(worker.id());
  if (!worker.flagged().empty()) {
    // The reason of a removed worker already has this advice.
    const bool has_advice = absl::StrContains(worker.flagged(), "hone workers resume");
    return absl::StrCat(worker.id(), " is refused: ", WithRepeatedOptions(worker.flagged()),
                        has_advice ? "" : absl::StrCat("; ", resume));
  }
  std::vector<std::string> states, help;
  if (worker.draining()) {
    states.push_back("is drained");
    help.push_back(resume);
  }
  if (!worker.connected() || worker.stopping() || worker.silent()) {
    states.push_back(worker.last_seen_unix_ms() == 0
                         ? "is away"
                         : absl::StrCat(worker.stopping() ? "was stopped on " : "was last seen on ",
                                        FormatTime(worker.last_seen_unix_ms())));
    help.push_back(absl::StrCat("start hone-worker on its machine",
                                worker.host().empty() ? "" : absl::StrCat(" (", worker.host(), ")"),
                                " again"));
  }
  return absl::StrCat(worker.id(), " ", absl::StrJoin(states, " and "), "; ",
                      absl::StrJoin(help, ", and "));
}

// Adds the reasons why none of the workers that `could` do some work takes it, if that is so.
void AddWait(const std::vector<v1::WorkerInfo>& workers, const Predicate& could,
             const std::string& what, std::vector<std::string>& waits) {
  std::vector<std::string> idle;
  for (const v1::WorkerInfo& worker : workers) {
    if (!could(worker)) continue;
    if (TakesWork(worker)) return;
    idle.push_back(WhyIdle(worker));
  }
  if (!idle.empty()) waits.push_back(absl::StrCat(what, ": ", absl::StrJoin(idle, "; ")));
}

// The instruction set, which is the beginning of a target.
absl::string_view InstructionSet(absl::string_view target) {
  return target.substr(0, target.find('-'));
}

}  // namespace

std::string WorkerState(const v1::WorkerInfo& worker) {
  const bool here = worker.connected();
  if (!worker.flagged().empty()) return here ? "refused" : "refused, disconnected";
  if (worker.draining()) {
    return !here ? "drained, disconnected" : worker.leases() > 0 ? "draining" : "drained";
  }
  if (worker.stopping()) return "stopped";
  if (worker.silent()) return "not responding";
  return here ? "connected" : "disconnected";
}

std::string ResumedText(const v1::WorkerInfo& worker) {
  if (worker.connected() && !worker.stopping())
    return absl::StrCat(worker.id(), " gets work again");
  return absl::StrCat(
      worker.id(),
      " may work again but is not connected: if hone-worker still runs there, it connects within "
      "seconds; otherwise, start it");
}

std::string WhyJobsWait(const std::vector<v1::WorkerInfo>& workers) {
  std::set<std::string> targets;
  for (const v1::WorkerInfo& worker : workers) {
    if (worker.can_run()) targets.insert(worker.target());
  }
  std::vector<std::string> waits;
  for (const std::string& target : targets) {
    AddWait(
        workers, [&](const auto& worker) { return worker.can_run() && worker.target() == target; },
        absl::StrCat("jobs for ", target, " wait"), waits);
  }
  // Of refused workers that do not call, only the name is known.
  if (targets.empty()) {
    AddWait(workers, [](const auto& worker) { return !worker.can_build(); }, "jobs wait", waits);
  }
  const auto builds = [](const v1::WorkerInfo& worker) { return worker.can_build(); };
  if (waits.empty()) AddWait(workers, builds, "no worker builds kernels, so jobs wait", waits);
  return absl::StrJoin(waits, ". ");
}

std::string WaitWithout(const std::string& drained, const std::vector<v1::WorkerInfo>& workers,
                        const std::vector<v1::Job>& jobs) {
  const auto worker = std::find_if(workers.begin(), workers.end(),
                                   [&](const auto& each) { return each.id() == drained; });
  if (worker == workers.end()) return "";
  const auto none_takes_work = [&](const Predicate& could) {
    return std::none_of(workers.begin(), workers.end(),
                        [&](const v1::WorkerInfo& each) { return could(each) && TakesWork(each); });
  };
  const absl::string_view isa = InstructionSet(worker->target());
  const bool runs = worker->can_run() && none_takes_work([&](const v1::WorkerInfo& each) {
                      return each.can_run() && each.target() == worker->target();
                    });
  const bool builds = worker->can_build() && none_takes_work([&](const v1::WorkerInfo& each) {
                        return each.can_build() && InstructionSet(each.target()) == isa;
                      });
  std::vector<std::string> waiting;
  for (const v1::Job& job : jobs) {
    if (client::HasEnded(job.state())) continue;
    const bool needs_it = (runs && job.target() == worker->target()) ||
                          (builds && InstructionSet(job.target()) == isa);
    if (needs_it) waiting.push_back(job.id());
  }
  if (waiting.empty()) return "";
  const bool one = waiting.size() == 1;
  return absl::StrCat(
      "no other worker ", runs ? "runs" : "builds for", " target ", worker->target(), ", so ",
      one ? absl::StrCat("job ", waiting[0], " waits")
          : absl::StrCat(Counted(static_cast<int64_t>(waiting.size()), "job"), " wait (",
                         absl::StrJoin(waiting, ", "), ")"),
      ", and ", one ? "fails" : "fail", " if that takes too long; ", HowToResume(drained));
}

}  // namespace hone::cli
