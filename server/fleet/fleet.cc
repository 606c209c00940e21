// Calls of workers, what they report, and what they are answered.

#include "server/fleet/fleet.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/rng.h"
#include "server/fleet/result_check.h"

namespace hone::fleet {
namespace {

// A worker that gets no answer but a refusal need not ask often.
constexpr absl::Duration kTurnedAwayWait = absl::Seconds(30);
constexpr size_t kPastEpochs = 16;

std::string RandomInstance() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

}  // namespace

Fleet::Fleet(const Clock* clock, ArtifactCache* artifacts, FleetOptions options)
    : clock_(clock),
      artifacts_(artifacts),
      options_(std::move(options)),
      instance_(options_.instance.empty() ? RandomInstance() : options_.instance) {}

void Fleet::Submit(WorkItem work, WorkDone done) {
  After after;
  absl::Status full;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    const int64_t mine = queue_.items(work.owner);
    if (mine >= options_.max_items_per_owner) {
      full = absl::ResourceExhaustedError(
          absl::StrCat(mine, " candidates of ",
                       work.owner.empty() ? "this user" : absl::StrCat("'", work.owner, "'"),
                       " wait or are measured, the most that one user may have"));
    } else if (queue_.items() >= options_.max_items) {
      full = absl::ResourceExhaustedError(absl::StrCat(
          queue_.items(), " candidates wait or are measured, the most that this server keeps"));
    } else {
      const std::string holder = work.worker_id;
      TrackedItem* item = queue_.Find(queue_.Add(std::move(work), std::move(done), clock_->Now()));
      if (!item->artifact_digest.empty()) item->builder_id = holder;
      fresh_.insert(item->lane());
      Offer(after);
    }
  }
  if (!full.ok()) return std::move(done)(full, [] {});
  for (auto& call : after) std::move(call)();
}

void Fleet::CancelJob(const std::string& job_id) { CancelItems(job_id, true); }
void Fleet::CancelWaiting(const std::string& job_id) { CancelItems(job_id, false); }

void Fleet::CancelItems(const std::string& job_id, bool started_too) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    for (int64_t id : queue_.ItemsOf(job_id)) {
      const std::string lease_id = queue_.Find(id)->lease_id;
      if (!lease_id.empty()) {
        const LeaseState& lease = leases_.at(lease_id);
        if (!started_too && lease.phase != LeasePhase::kQueued) continue;
        const std::string worker_id = lease.worker_id;
        Worker& worker = workers_.at(worker_id);
        worker.leases.erase(lease_id);
        worker.cancel.push_back(lease_id);
        leases_.erase(lease_id);
        Wake(worker_id, worker, after);
      }
      Deliver(queue_.Remove(id), absl::CancelledError("the job was cancelled"), "", after);
    }
  }
  for (auto& call : after) std::move(call)();
}

std::string Fleet::WhyTurnedAway(const WorkerReport& report) const {
  auto refused = refused_.find(report.worker_id);
  if (refused != refused_.end() && refused->second.removed) return refused->second.why;
  auto found = workers_.find(report.worker_id);
  if (found == workers_.end()) {
    if (static_cast<int64_t>(workers_.size()) < options_.max_workers) return "";
    return absl::StrCat(workers_.size(),
                        " workers are registered, the most that this server keeps");
  }
  const Worker& worker = found->second;
  if (worker.connected && worker.identity != report.identity) {
    return absl::StrCat("the name ", report.worker_id, " belongs to ",
                        worker.identity.empty() ? "a worker without credentials"
                                                : absl::StrCat("'", worker.identity, "'"),
                        "; give this worker a name of its own");
  }
  // While the newer process lives; one that has gone leaves the name to whoever still calls.
  const auto& past = worker.past_epochs;
  if (worker.connected && std::find(past.begin(), past.end(), report.epoch) != past.end()) {
    return absl::StrCat("another process has registered as ", report.worker_id,
                        " since; give each worker a name of its own");
  }
  return "";
}

uint64_t Fleet::Synchronize(WorkerReport report, SynchronizeDone done) {
  After after;
  uint64_t token = 0;
  {
    absl::MutexLock lock(&mutex_);
    token = next_token_++;
    const std::string id = report.worker_id;
    if (std::string why = WhyTurnedAway(report); !why.empty()) {
      // Nothing that it says changes anything; it is told to let go of everything.
      SynchronizeReply reply;
      for (const HeldLease& held : report.held) reply.cancel.push_back(held.lease_id);
      for (const FinishedLease& finished : report.finished) {
        reply.durable.push_back(finished.lease_id);
      }
      counts_.refused_results += static_cast<int64_t>(report.finished.size());
      reply.refused = std::move(why);
      reply.next_call = kTurnedAwayWait;
      reply.heartbeat = options_.heartbeat;
      after.push_back([done = std::move(done), reply = std::move(reply)]() mutable {
        std::move(done)(std::move(reply));
      });
    } else {
      const auto [entry, fresh] = workers_.try_emplace(id);
      Worker& worker = entry->second;
      if (fresh) worker.drained = drained_.contains(id);
      const absl::Duration max_wait = std::min(report.max_wait, options_.max_wait());
      Answer(id, worker, SynchronizeReply(), after);  // an earlier call that is still held
      ReadReport(id, worker, report, after);
      // Between three quarters and all of the wait, so that the calls of many workers spread.
      worker.call = {token, clock_->Now() + max_wait * (0.75 + 0.25 * Rng(token).Uniform()),
                     std::move(done), max_wait > absl::ZeroDuration()};
      if (worker.commits_ended >= worker.commits_awaited) {
        worker.commits_awaited = worker.commits_begun;
      }
      held_calls_[token] = id;
      Wake(id, worker, after);
      Offer(after);
      if (worker.call.token == token && (shut_down_ || max_wait <= absl::ZeroDuration())) {
        SynchronizeReply reply;
        if (shut_down_) reply.next_call = absl::Seconds(1);
        Answer(id, worker, std::move(reply), after);
      }
    }
  }
  for (auto& call : after) std::move(call)();
  return token;
}

void Fleet::Abandon(uint64_t token) {
  SynchronizeDone dropped;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  auto held = held_calls_.find(token);
  if (held == held_calls_.end()) return;
  Worker& worker = workers_.at(held->second);
  dropped = std::move(worker.call.done);
  worker.call = HeldCall();
  worker.last_seen = clock_->Now();
  NoteHunger(held->second, worker);
  held_calls_.erase(held);
}

void Fleet::ReadReport(const std::string& id, Worker& worker, WorkerReport& report, After& after) {
  absl::flat_hash_set<std::string> stated;
  for (FinishedLease& finished : report.finished) {
    // Also those that an earlier process of the worker left on its disk.
    if (stated.insert(finished.lease_id).second) Finish(id, worker, finished, after);
  }
  if (worker.epoch != report.epoch) {
    if (!worker.epoch.empty()) {
      LoseWorker(worker, "its process was started again", after);
      worker.past_epochs.push_back(worker.epoch);
      std::erase(worker.past_epochs, report.epoch);
      if (worker.past_epochs.size() > kPastEpochs) worker.past_epochs.pop_front();
    }
    worker.epoch = report.epoch;
    worker.identity = report.identity;
    worker.standing_told = !worker.drained && !refused_.contains(id);
  }
  const bool new_here = !worker.connected ||
                        worker.capabilities.can_run != report.capabilities.can_run ||
                        worker.capabilities.target_key != report.capabilities.target_key;
  worker.capabilities = std::move(report.capabilities);
  worker.connected = true;
  worker.leaving = report.draining;
  worker.last_seen = clock_->Now();
  if (new_here) {
    CountRunners();
    OfferEverything();
    AnswerTargetWaits(after);
  }

  const std::map<std::string, absl::Time> strange = std::exchange(worker.strange, {});
  const bool stops = worker.leaving || worker.drained;
  for (const HeldLease& held : report.held) {
    if (!stated.insert(held.lease_id).second) continue;
    if (!worker.leases.contains(held.lease_id)) {
      // Not ours any more, or granted before this server started. It may take a while to stop: no
      // need to repeat it in every answer.
      auto told = strange.find(held.lease_id);
      const bool tell =
          told == strange.end() || told->second + options_.cancel_retry <= worker.last_seen;
      if (tell) worker.cancel.push_back(held.lease_id);
      worker.strange[held.lease_id] = tell ? worker.last_seen : told->second;
      continue;
    }
    leases_.at(held.lease_id).phase = held.phase;
    if (stops && held.phase == LeasePhase::kQueued) TakeBack(held.lease_id, after);
  }
  // What was granted and is not restated was lost with a reply: it is said again. The worker knows
  // a lease by its id.
  worker.resend.clear();
  for (const std::string& lease_id : worker.leases) {
    if (!stated.contains(lease_id)) worker.resend.push_back(lease_id);
  }
  worker.free_build_slots = report.free_build_slots;
  worker.free_run_slots = report.free_run_slots;
  for (const std::string& lease_id : worker.resend) {
    --(leases_.at(lease_id).build ? worker.free_build_slots : worker.free_run_slots);
  }
}

void Fleet::Finish(const std::string& id, Worker& worker, FinishedLease& finished, After& after) {
  auto found = leases_.find(finished.lease_id);
  if (found == leases_.end() || found->second.worker_id != id) {
    auto committing = committing_.find(finished.lease_id);
    if (committing != committing_.end() && committing->second == id) return;
    worker.durable.push_back(finished.lease_id);  // committed long ago, or refused for good
    ++counts_.refused_results;
    return;
  }
  const LeaseState lease = found->second;
  TrackedItem* item = queue_.Find(lease.item);
  record::MeasureResult& result = finished.result;
  const bool built = lease.build && !lease.run && result.outcome == record::Outcome::kOk;
  std::string wrong = finished.malformed;
  if (lease.run) DropImpossibleDrift(item->work, worker.capabilities, &result);
  if (wrong.empty() && lease.run) wrong = WhyImpossible(item->work, result, worker.capabilities);
  if (!wrong.empty()) {
    worker.durable.push_back(finished.lease_id);
    ++counts_.refused_results;
    EndLease(finished.lease_id, {.why = absl::StrCat(id, " reported what cannot be: ", wrong)},
             after);
    Distrust(id, absl::StrCat("it reported what cannot be: ", wrong), after);
    return;
  }
  if (result.outcome == record::Outcome::kCrash || result.outcome == record::Outcome::kDeviceLost) {
    worker.last_error =
        absl::StrCat(absl::string_view(record::OutcomeName(result.outcome)), ": ", result.detail);
  }
  if (result.outcome == record::Outcome::kDeviceLost &&
      ++item->device_errors < options_.max_device_errors) {
    // The worker's failure, not the candidate's.
    worker.durable.push_back(finished.lease_id);
    EndLease(finished.lease_id, {.why = absl::StrCat(id, ": ", result.detail)}, after);
    return;
  }
  if (built && !artifacts_->Has(result.artifact_digest)) {
    worker.durable.push_back(finished.lease_id);
    EndLease(
        finished.lease_id,
        {.why = absl::StrCat("artifact ", result.artifact_digest, " of ", id, " did not arrive")},
        after);
    return;
  }
  worker.leases.erase(finished.lease_id);
  leases_.erase(found);
  if (built) {
    item->artifact_digest = result.artifact_digest;
    item->facts = result.facts;
    item->builder_id = id;
    worker.durable.push_back(finished.lease_id);
    Requeue(*item);
    return;
  }
  if (!lease.build) {
    result.artifact_digest = item->artifact_digest;
    if (result.facts.program_digest.empty()) result.facts = item->facts;
  }
  if (lease.run) worker.machine = result.machine;
  WorkResult answer{.result = std::move(result),
                    .worker_id = id,
                    .environment = worker.capabilities.environment,
                    .peak_gflops = worker.capabilities.peak_gflops,
                    .read_gbps = worker.capabilities.read_gbps};
  committing_[finished.lease_id] = id;
  ++worker.commits_begun;
  ++counts_.results;
  Deliver(queue_.Remove(lease.item), std::move(answer), finished.lease_id, after);
}

// Remembers that the owner has a result, until it says that it is committed or gives up.
class Fleet::Commit {
 public:
  Commit(Fleet* fleet, std::string lease_id) : fleet_(fleet), lease_id_(std::move(lease_id)) {}
  Commit(Commit&& other) noexcept
      : fleet_(std::exchange(other.fleet_, nullptr)), lease_id_(std::move(other.lease_id_)) {}
  Commit& operator=(Commit&&) = delete;
  ~Commit() {
    if (fleet_ != nullptr) End(false);
  }
  void Done() { End(true); }

 private:
  void End(bool durable) {
    if (!lease_id_.empty()) fleet_->EndCommit(std::exchange(lease_id_, ""), durable);
  }

  Fleet* fleet_;
  std::string lease_id_;
};

void Fleet::Deliver(TrackedItem item, absl::StatusOr<WorkResult> result,
                    const std::string& lease_id, After& after) {
  after.push_back([done = std::move(item.done), result = std::move(result),
                   commit = Commit(this, lease_id)]() mutable {
    std::move(done)(std::move(result), [commit = std::move(commit)]() mutable { commit.Done(); });
  });
}

void Fleet::EndCommit(const std::string& lease_id, bool durable) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    auto found = committing_.find(lease_id);
    if (found == committing_.end()) return;
    auto worker = workers_.find(found->second);
    if (worker != workers_.end()) {
      Worker& known = worker->second;
      // One that was forgotten meanwhile has begun none.
      known.commits_ended = std::min(known.commits_ended + 1, known.commits_begun);
      if (durable) known.durable.push_back(lease_id);
      Wake(worker->first, known, after);
    }
    committing_.erase(found);
  }
  for (auto& call : after) std::move(call)();
}

SynchronizeReply Fleet::Compose(const std::string& id, Worker& worker) {
  SynchronizeReply reply;
  for (const std::string& lease_id : worker.resend) {
    auto found = leases_.find(lease_id);
    if (found != leases_.end()) reply.start.push_back(Describe(lease_id, found->second));
  }
  worker.resend.clear();
  const std::set<std::string> cancel(worker.cancel.begin(), worker.cancel.end());
  reply.cancel.assign(cancel.begin(), cancel.end());
  worker.cancel.clear();
  const std::set<std::string> durable(worker.durable.begin(), worker.durable.end());
  reply.durable.assign(durable.begin(), durable.end());
  worker.durable.clear();
  const absl::Time now = clock_->Now();
  for (auto& [digest, when] : worker.keep) {
    if (when > now) continue;
    reply.keep_artifacts.push_back(digest);
    when = now + options_.keep_retry;
  }
  reply.standing_new = !std::exchange(worker.standing_told, true);
  if (!worker.leaving && !worker.drained && !refused_.contains(id)) Grant(id, worker, reply);
  return reply;
}

void Fleet::Answer(const std::string& id, Worker& worker, SynchronizeReply reply, After& after) {
  if (worker.call.token == 0) return;
  worker.last_seen = clock_->Now();
  reply.drain = worker.drained;
  if (auto refused = refused_.find(id); refused != refused_.end()) {
    reply.refused = refused->second.why;
  }
  reply.heartbeat = options_.heartbeat;
  reply.gather = Pace();
  after.push_back([done = std::move(worker.call.done), reply = std::move(reply)]() mutable {
    std::move(done)(std::move(reply));
  });
  held_calls_.erase(worker.call.token);
  worker.call = HeldCall();
  NoteHunger(id, worker);
}

absl::Duration Fleet::Pace() const {
  return std::min(options_.rest(), options_.spacing * static_cast<int64_t>(workers_.size()));
}

absl::Duration Fleet::NextCall(const Worker& worker) const {
  if (worker.leases.empty()) return absl::ZeroDuration();
  return worker.IsFull() ? options_.rest() : Pace();
}

void Fleet::Wake(const std::string& id, Worker& worker, After& after) {
  if (worker.call.token == 0 || shut_down_) return;
  if (!worker.WaitsForCommit()) {
    SynchronizeReply reply = Compose(id, worker);
    if (!reply.IsEmpty()) {
      reply.next_call = NextCall(worker);
      return Answer(id, worker, std::move(reply), after);
    }
  }
  NoteHunger(id, worker);
}

void Fleet::NoteHunger(const std::string& id, const Worker& worker) {
  const bool open = worker.call.token != 0 && !worker.leaving && !worker.drained &&
                    !worker.WaitsForCommit() && !refused_.contains(id);
  const auto note = [&](std::set<std::string>& hungry, int slots) {
    if (open && slots > 0) {
      hungry.insert(id);
    } else {
      hungry.erase(id);
    }
  };
  note(hungry_for_builds_, worker.free_build_slots);
  note(hungry_for_runs_, worker.free_run_slots);
}

void Fleet::KeepArtifact(const std::string& digest, const std::string& worker_id) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    auto found = workers_.find(worker_id);
    if (found == workers_.end() || artifacts_->Has(digest)) return;
    found->second.keep.emplace(digest, clock_->Now());
    Wake(worker_id, found->second, after);
  }
  for (auto& call : after) std::move(call)();
}

void Fleet::ArtifactArrived(const std::string& digest) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [id, worker] : workers_) {
      if (!worker.keep.empty()) worker.keep.erase(digest);
    }
    OfferEverything();
    Offer(after);
  }
  for (auto& call : after) std::move(call)();
}

void Fleet::Shutdown() {
  After after;
  WorkQueue dropped;  // destroyed without the lock
  {
    absl::MutexLock lock(&mutex_);
    shut_down_ = true;
    for (auto& [id, worker] : workers_) {
      SynchronizeReply reply;
      reply.durable = std::exchange(worker.durable, {});
      reply.next_call = absl::Seconds(1);
      Answer(id, worker, std::move(reply), after);
      worker.leases.clear();
    }
    leases_.clear();
    lease_deadlines_.clear();
    std::swap(dropped, queue_);
    for (TargetWait& wait : target_waits_) {
      after.push_back([done = std::move(wait.done)]() mutable {
        std::move(done)(absl::UnavailableError("the server is shutting down"));
      });
    }
    target_waits_.clear();
  }
  for (auto& call : after) std::move(call)();
}

}  // namespace hone::fleet
