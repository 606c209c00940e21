#include "client/cli/job_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/format.h"

namespace hone::cli {
namespace {

// A candidate may take seconds. The server considers a worker lost after 20 s.
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr absl::Duration kInterval = absl::Seconds(5);

bool TakesWork(const client::Worker& worker) {
  return worker.connected && !worker.draining && !worker.stopping && worker.flagged.empty();
}

std::string WhyIdle(const client::Worker& worker) {
  if (!worker.flagged.empty()) return absl::StrCat(worker.id, " is refused: ", worker.flagged);
  if (worker.draining) return absl::StrCat(worker.id, " is drained");
  if (worker.last_seen_unix_ms == 0) return absl::StrCat(worker.id, " is away");
  return absl::StrCat(worker.id, worker.stopping ? " was stopped at " : " was last seen at ",
                      FormatTime(worker.last_seen_unix_ms));
}

// Says why no worker takes work; "" if one does. `does`: "runs target x". `where`: where to start a
// worker if there is none.
std::string WhyNone(const std::vector<client::Worker>& workers, const std::string& does,
                    absl::string_view where) {
  if (std::any_of(workers.begin(), workers.end(), TakesWork)) return "";
  if (workers.empty()) {
    return absl::StrCat("no worker ", does, "; start hone-worker on ", where);
  }
  std::vector<std::string> states, advice;
  bool away = false, held_back = false;
  for (const client::Worker& worker : workers) {
    states.push_back(WhyIdle(worker));
    held_back = held_back || worker.draining || !worker.flagged.empty();
    away = away || worker.stopping || !worker.connected;
  }
  if (away) advice.push_back("start hone-worker there again");
  if (held_back) advice.push_back("\"hone workers resume NAME\" gives it work again");
  return absl::StrCat("no worker ", does, ": ", absl::StrJoin(states, ", "), "; ",
                      absl::StrJoin(advice, ", or "));
}

std::string MeasuredBy(const client::Job& job) {
  int64_t outcomes = 0;
  for (const auto& [name, count] : job.outcomes) outcomes += count;
  return absl::StrCat(job.trials, " ", outcomes);
}

}  // namespace

std::string WhyNoWorker(const std::vector<client::Worker>& workers, const std::string& target) {
  std::vector<client::Worker> runners, builders;
  for (const client::Worker& worker : workers) {
    if (worker.can_run && worker.target == target) runners.push_back(worker);
    if (worker.can_build) builders.push_back(worker);
  }
  const std::string why = WhyNone(runners, absl::StrCat("runs target ", target), "such a machine");
  return why.empty() ? WhyNone(builders, "builds kernels", "a machine with hone-builder") : why;
}

void JobWait::Explain(std::string phase, std::string message) {
  phase_ = std::move(phase);
  needs_worker_ = false;
  if (message == reason_) return;
  reason_ = std::move(message);
  if (!reason_.empty()) message_ = reason_;
}

void JobWait::Look(const client::Job& job, client::JobNews news) {
  const absl::Time now = clock_.Now();
  if (news == client::JobNews::kNoServer) {
    away_since_ = std::min(away_since_, now);
    const std::string since = FormatTime(absl::ToUnixMillis(away_since_));
    return Explain(absl::StrCat("no server since ", since),
                   absl::StrCat("the server has not answered since ", since, "; job ", job.id,
                                " continues when it is back"));
  }
  std::string measured = MeasuredBy(job);
  std::string doing = absl::StrCat(client::JobStateName(job.state), " ", job.phase);
  const bool measures = measured != measured_ || away_since_ != absl::InfiniteFuture();
  const bool changes = measures || doing != doing_;
  const bool begins_to_confirm = job.state == client::JobState::kConfirming && !confirms_;
  measured_ = std::move(measured);
  doing_ = std::move(doing);
  confirms_ = job.state == client::JobState::kConfirming;
  away_since_ = absl::InfiniteFuture();
  if (HasEnded(job.state)) return Explain("", "");
  if (changes) {
    next_look_ = now + kPatience;
    // A job that waits for a worker may end its search without one.
    const bool waits_on = needs_worker_ && !measures;
    if (!waits_on) Explain("", "");
    if (waits_on || begins_to_confirm) LookAtWorkers(job, /*patient=*/false);
    return;
  }
  if (now < next_look_) return;
  next_look_ = now + kInterval;
  LookAtWorkers(job, /*patient=*/true);
}

void JobWait::LookAtWorkers(const client::Job& job, bool patient) {
  if (list_workers_ == nullptr) return;
  absl::StatusOr<std::vector<client::Worker>> workers = list_workers_();
  if (!workers.ok()) return;
  for (client::Worker& worker : *workers) {
    // The server considers a worker lost only after a while, but a running worker calls every
    // second.
    const auto [entry, is_new] = last_seen_.try_emplace(worker.id);
    Seen& seen = entry->second;
    const bool called = is_new || seen.unix_ms != worker.last_seen_unix_ms;
    if (called || patient) seen = {.unix_ms = worker.last_seen_unix_ms, .silent = !called};
    if (seen.silent) worker.connected = false;
  }
  const std::string why = WhyNoWorker(*workers, job.target);
  Explain(why.empty() ? "" : "waiting for a worker",
          why.empty() ? "" : absl::StrCat("job ", job.id, " waits: ", why));
  needs_worker_ = !why.empty();
}

}  // namespace hone::cli
