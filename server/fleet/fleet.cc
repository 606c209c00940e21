#include "server/fleet/fleet.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/rng.h"

namespace hone::fleet {
namespace {

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
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    const std::string holder = work.worker_id;
    TrackedItem* item = queue_.Find(queue_.Add(std::move(work), std::move(done)));
    if (!item->artifact_digest.empty()) item->builder_id = holder;
    Pump(after);
  }
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
        Worker& worker = workers_.at(lease.worker_id);
        worker.leases.erase(lease_id);
        worker.cancel.push_back(lease_id);
        leases_.erase(lease_id);
      }
      Deliver(queue_.Remove(id), absl::CancelledError("the job was cancelled"), "", after);
    }
    Pump(after);
  }
  for (auto& call : after) std::move(call)();
}

uint64_t Fleet::Synchronize(WorkerReport report, SynchronizeDone done) {
  After after;
  uint64_t token = 0;
  {
    absl::MutexLock lock(&mutex_);
    token = next_token_++;
    const std::string id = report.worker_id;
    Worker& worker = workers_[id];
    const absl::Duration max_wait = std::min(report.max_wait, options_.max_wait);
    Answer(worker, SynchronizeReply(), after);  // an earlier call that is still held
    ReadReport(id, worker, report, after);
    // Between three quarters and all of the wait, so that the calls of many workers spread.
    worker.call = {token, clock_->Now() + max_wait * (0.75 + 0.25 * Rng(token).Uniform()),
                   std::move(done)};
    Pump(after);
    if (worker.call.token == token && (shut_down_ || max_wait <= absl::ZeroDuration())) {
      SynchronizeReply reply;
      if (shut_down_) reply.next_call = absl::Seconds(1);
      Answer(worker, std::move(reply), after);
    }
  }
  for (auto& call : after) std::move(call)();
  return token;
}

void Fleet::Abandon(uint64_t token) {
  SynchronizeDone dropped;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  for (auto& [id, worker] : workers_) {
    if (worker.call.token != token) continue;
    dropped = std::move(worker.call.done);
    worker.call = HeldCall();
    worker.last_seen = clock_->Now();
  }
}

void Fleet::ReadReport(const std::string& id, Worker& worker, WorkerReport& report, After& after) {
  absl::flat_hash_set<std::string> stated;
  for (FinishedLease& finished : report.finished) {
    // Also those that an earlier process of the worker left on its disk.
    if (stated.insert(finished.lease_id).second) Finish(id, worker, finished, after);
  }
  if (worker.epoch != report.epoch) {
    if (!worker.epoch.empty()) LoseWorker(worker, "its process was started again", after);
    worker.epoch = report.epoch;
  }
  worker.capabilities = std::move(report.capabilities);
  worker.connected = true;
  worker.draining = report.draining;
  worker.last_seen = clock_->Now();

  const std::map<std::string, absl::Time> strange = std::exchange(worker.strange, {});
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
    if (worker.draining && held.phase == LeasePhase::kQueued) {
      worker.cancel.push_back(held.lease_id);
      EndLease(held.lease_id, false, false, after);
    }
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
    return;
  }
  const LeaseState lease = found->second;
  worker.leases.erase(finished.lease_id);
  leases_.erase(found);
  TrackedItem* item = queue_.Find(lease.item);
  record::MeasureResult& result = finished.result;
  const bool built = lease.build && !lease.run && result.outcome == record::Outcome::kOk;
  if (built) {
    item->artifact_digest = result.artifact_digest;
    item->facts = result.facts;
    item->builder_id = id;
    queue_.Requeue(*item);
    worker.durable.push_back(finished.lease_id);
    return;
  }
  if (!lease.build) {
    result.artifact_digest = item->artifact_digest;
    if (result.facts.program_digest.empty()) result.facts = item->facts;
  }
  if (result.outcome == record::Outcome::kCrash || result.outcome == record::Outcome::kDeviceLost) {
    worker.last_error =
        absl::StrCat(absl::string_view(record::OutcomeName(result.outcome)), ": ", result.detail);
  }
  WorkResult answer{.result = std::move(result),
                    .worker_id = id,
                    .environment = worker.capabilities.environment,
                    .peak_gflops = worker.capabilities.peak_gflops,
                    .read_gbps = worker.capabilities.read_gbps};
  committing_[finished.lease_id] = id;
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
    if (fleet_ == nullptr || lease_id_.empty()) return;
    absl::MutexLock lock(&fleet_->mutex_);
    fleet_->committing_.erase(lease_id_);
  }
  void Done() {
    if (!lease_id_.empty()) fleet_->Committed(std::exchange(lease_id_, ""));
  }

 private:
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

void Fleet::Committed(const std::string& lease_id) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    auto found = committing_.find(lease_id);
    if (found == committing_.end()) return;
    auto worker = workers_.find(found->second);
    if (worker != workers_.end()) worker->second.durable.push_back(lease_id);
    committing_.erase(found);
    Pump(after);
  }
  for (auto& call : after) std::move(call)();
}

void Fleet::EndLease(const std::string& lease_id, bool counts, bool killed, After& after) {
  const LeaseState lease = leases_.at(lease_id);
  leases_.erase(lease_id);
  workers_.at(lease.worker_id).leases.erase(lease_id);
  TrackedItem& item = *queue_.Find(lease.item);
  if (counts) ++item.attempts;
  if (killed) item.killed.push_back(lease.worker_id);
  std::string why;
  if (static_cast<int>(item.killed.size()) >= options_.max_killed_workers) {
    why = absl::StrCat("these workers were lost while running it: ",
                       absl::StrJoin(item.killed, ", "));
  } else if (item.attempts >= options_.max_attempts) {
    why = absl::StrCat("no answer from ", item.attempts, " leases");
  } else {
    queue_.Requeue(item);
    return;
  }
  WorkResult poisoned{.worker_id = lease.worker_id,
                      .environment = workers_.at(lease.worker_id).capabilities.environment};
  poisoned.result.outcome = record::Outcome::kDeviceLost;
  poisoned.result.detail = std::move(why);
  poisoned.result.facts = item.facts;
  Deliver(queue_.Remove(lease.item), std::move(poisoned), "", after);
}

void Fleet::LoseWorker(Worker& worker, absl::string_view why, After& after) {
  const std::set<std::string> leases = worker.leases;
  for (const std::string& lease_id : leases) {
    EndLease(lease_id, true, leases_.at(lease_id).phase == LeasePhase::kRunning, after);
  }
  worker.last_error = absl::StrCat("lost: ", why);
  worker.connected = false;
  worker.free_build_slots = worker.free_run_slots = 0;
  worker.resend.clear();
  worker.cancel.clear();
  worker.durable.clear();
  worker.keep.clear();
}

bool Fleet::Fits(const TrackedItem& item, const std::string& id, const Worker& worker) const {
  const bool runs =
      worker.capabilities.can_run && worker.capabilities.target_key == item.work.target_key;
  if (!item.work.worker_id.empty() && item.work.worker_id != id) {
    auto wanted = workers_.find(item.work.worker_id);
    if (wanted != workers_.end() && wanted->second.connected) return false;
  }
  if (item.artifact_digest.empty()) {
    // A build alone is of use only when somebody can run it.
    return worker.capabilities.can_build && worker.free_build_slots > 0 &&
           (runs || HasRunner(item.work.target_key));
  }
  return runs && worker.free_run_slots > 0 &&
         (item.builder_id == id || artifacts_->Has(item.artifact_digest));
}

bool Fleet::HasRunner(const std::string& target_key) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    const Capabilities& can = entry.second.capabilities;
    return can.can_run && can.target_key == target_key;
  });
}

void Fleet::Grant(const std::string& id, Worker& worker, SynchronizeReply& reply) {
  while (worker.free_build_slots > 0 || worker.free_run_slots > 0) {
    TrackedItem* item =
        queue_.Take([&](const TrackedItem& candidate) { return Fits(candidate, id, worker); });
    if (item == nullptr) return;
    LeaseState lease{.item = item->id, .worker_id = id};
    lease.build = item->artifact_digest.empty();
    lease.run = !lease.build || (worker.capabilities.can_run &&
                                 worker.capabilities.target_key == item->work.target_key);
    lease.deadline = clock_->Now() + options_.lease_limit;
    --(lease.build ? worker.free_build_slots : worker.free_run_slots);
    item->lease_id = absl::StrCat(instance_, "-", next_lease_++);
    item->unsatisfied_since = absl::InfiniteFuture();
    reply.start.push_back(Describe(item->lease_id, lease));
    worker.leases.insert(item->lease_id);
    leases_[item->lease_id] = std::move(lease);
  }
}

LeaseGrant Fleet::Describe(const std::string& lease_id, const LeaseState& lease) {
  const TrackedItem& item = *queue_.Find(lease.item);
  const WorkItem& work = item.work;
  return {.lease_id = lease_id,
          .build = lease.build,
          .run = lease.run,
          .limit = lease.deadline - clock_->Now(),
          .workload = work.workload,
          .workload_digest = work.workload_digest,
          .space_digest = work.space_digest,
          .space = work.space,
          .decisions = work.decisions,
          .target = work.target,
          .artifact_digest = item.artifact_digest,
          .policy = work.policy,
          .tolerance = work.tolerance,
          .best_latency_ns = work.best_latency_ns == nullptr ? 0 : work.best_latency_ns->load(),
          .job_id = work.job_id,
          .priority = work.priority};
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
  if (!worker.draining) Grant(id, worker, reply);
  return reply;
}

void Fleet::Answer(Worker& worker, SynchronizeReply reply, After& after) {
  if (worker.call.token == 0) return;
  worker.last_seen = clock_->Now();
  after.push_back([done = std::move(worker.call.done), reply = std::move(reply)]() mutable {
    std::move(done)(std::move(reply));
  });
  worker.call = HeldCall();
}

void Fleet::Pump(After& after) {
  for (auto& [id, worker] : workers_) {
    if (worker.call.token == 0 || shut_down_) continue;
    SynchronizeReply reply = Compose(id, worker);
    if (!reply.IsEmpty()) Answer(worker, std::move(reply), after);
  }
  for (auto it = target_waits_.begin(); it != target_waits_.end();) {
    absl::StatusOr<TargetChoice> choice = ChooseTarget(it->key);
    if (absl::IsUnavailable(choice.status())) {
      ++it;
      continue;
    }
    after.push_back([done = std::move(it->done), choice = std::move(choice)]() mutable {
      std::move(done)(std::move(choice));
    });
    it = target_waits_.erase(it);
  }
}

void Fleet::KeepArtifact(const std::string& digest, const std::string& worker_id) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    auto found = workers_.find(worker_id);
    if (found == workers_.end() || artifacts_->Has(digest)) return;
    found->second.keep.emplace(digest, clock_->Now());
    Pump(after);
  }
  for (auto& call : after) std::move(call)();
}

void Fleet::ArtifactArrived(const std::string& digest) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [id, worker] : workers_) worker.keep.erase(digest);
    Pump(after);
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
      Answer(worker, std::move(reply), after);
      worker.leases.clear();
    }
    leases_.clear();
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
