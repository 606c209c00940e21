#ifndef HONE_SERVER_FLEET_WORKER_H_
#define HONE_SERVER_FLEET_WORKER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/record.h"

namespace hone::fleet {

// The compiler that built an artifact, as the artifact's records name it. "" and 0 if unknown.
struct BuilderVersion {
  std::string compiler;
  int codegen_version = 0;
  friend bool operator==(const BuilderVersion&, const BuilderVersion&) = default;
};
inline BuilderVersion BuilderOf(const record::Environment& environment) {
  return {environment.compiler, environment.codegen_version};
}

// One candidate that a job wants built and measured.
struct WorkItem {
  std::string job_id;
  std::string owner;  // of the job; owners share the workers evenly
  int priority = 0;  // kLowPriority, kNormalPriority or kHighPriority: see FairShare (lease_book.h)

  std::string workload;  // text form
  std::string workload_digest;
  std::string op;     // the workload's name
  std::string space;  // the design space's text
  std::string space_digest;
  std::vector<int64_t> decisions;
  std::string target;      // text form, for the builder
  std::string target_key;  // only workers whose device has this key may run it
  record::Policy policy;
  double tolerance = 0;
  std::string inputs_digest;  // of the data of a user to measure on; "": seeded inputs
  // The best latency of the task, read when a lease is granted; null or 0 if there is none yet.
  std::shared_ptr<const std::atomic<double>> best_latency_ns;
  // Number of operations that every kernel for this item performs; a multiply-add counts as two. 0
  // if unknown, or if algorithms with fewer operations are allowed.
  double fixed_flops = 0;

  // If set, this artifact is run, and the candidate is not built again.
  std::string artifact_digest;
  BuilderVersion builder;  // of that artifact
  // The candidate is built by a new process and not run. The artifact stays with the worker; the
  // result has its digest.
  bool only_digest = false;
  // If set, only this worker runs the item while the worker is connected, because the latencies of
  // several items are compared with each other.
  std::string worker_id;
  // Workers that must not run the item, because another worker must check their result.
  std::vector<std::string> avoid;
};

// The answer to an item.
struct WorkResult {
  record::MeasureResult result;
  std::string worker_id;
  record::Environment environment;  // of the worker that ran it, with the artifact's builder
  double peak_gflops = 0;           // of its device; 0 if unknown
  double read_gbps = 0;             // of its memory; 0 if unknown
};

// Called by the job once the result is committed; the worker may then forget the result. May be
// called from any thread, even after the job was cancelled. Destroying it without a call drops the
// result: the worker is told to forget it when it next reports it.
using Acknowledge = absl::AnyInvocable<void() &&>;

// Called once per item, from any thread and without a lock. It must not block. An error means that
// the item has no result. FailedPrecondition: no registered worker can do the item. NotFound: the
// artifact named in the item is gone. Cancelled: the job was cancelled. ResourceExhausted: the
// queue or the owner's part of it is full; submit the item again later. Not called for items that
// are left when the fleet shuts down.
using WorkDone = absl::AnyInvocable<void(absl::StatusOr<WorkResult>, Acknowledge) &&>;

struct Capabilities {
  std::string host;
  std::string target;  // text form
  std::string target_key;
  bool can_build = false;
  bool can_run = false;
  int build_slots = 0;
  double peak_gflops = 0;
  double peak_gflops_one_core = 0;
  double read_gbps = 0;  // of memory, all cores
  int64_t memory_bytes = 0;
  std::string accelerator;  // "" if there is none
  // Instruction sets that its builder generates code for, as at the beginning of target keys. If
  // empty, only that of its own target.
  std::vector<std::string> build_isas;
  record::Environment environment;

  // Whether it builds kernels for a target.
  bool BuildsFor(absl::string_view key) const;
};

enum class LeasePhase { kQueued = 1, kBuilding = 2, kRunning = 3 };

struct HeldLease {
  std::string lease_id;
  LeasePhase phase = LeasePhase::kQueued;
};

struct FinishedLease {
  std::string lease_id;
  record::MeasureResult result;
  std::string malformed;  // why its result cannot be read; "" if it can
};

// What a worker reports in a call.
struct WorkerReport {
  std::string worker_id;
  std::string epoch;
  std::string identity;  // from its certificate or token; "" if callers are not authenticated
  Capabilities capabilities;
  std::vector<HeldLease> held;
  std::vector<FinishedLease> finished;
  int free_build_slots = 0;  // leases that begin with a build
  int free_run_slots = 0;    // leases that only run
  absl::Duration max_wait = absl::ZeroDuration();
  bool draining = false;
};

// Returns who a worker is, whatever it calls itself: the name of its certificate or token, with its
// host if the name stands for several workers. "" without credentials: only its name is known.
inline std::string IdentityOf(const WorkerReport& report) {
  if (report.identity.empty() || report.identity == report.worker_id) return report.identity;
  return absl::StrCat(report.identity, " on ", report.capabilities.host);
}

// A granted lease, as the worker gets it.
struct LeaseGrant {
  std::string lease_id;
  bool build = false;
  bool run = false;
  absl::Duration limit;  // from the receipt of the lease
  std::shared_ptr<const WorkItem> work;
  std::string artifact_digest;  // of the artifact to run; "" if it must be built
  double best_latency_ns = 0;   // of the task when the lease was granted
};

// The server's answer to a call: what the worker must do.
struct SynchronizeReply {
  std::vector<LeaseGrant> start;
  std::vector<std::string> cancel;
  std::vector<std::string> durable;
  std::vector<std::string> stored;  // those of `durable` that were just committed
  absl::Duration next_call = absl::ZeroDuration();
  std::vector<std::string> keep_artifacts;
  bool drain = false;         // the worker finishes its leases and takes no more
  std::string refused;        // why the worker is refused; "" if it is not
  bool standing_new = false;  // the two fields above have changed since the last answer
  absl::Duration heartbeat = absl::ZeroDuration();
  absl::Duration gather = absl::ZeroDuration();  // how long a result may wait for more results

  bool IsEmpty() const {
    return start.empty() && cancel.empty() && durable.empty() && keep_artifacts.empty() &&
           !standing_new;
  }
};
using SynchronizeDone = absl::AnyInvocable<void(SynchronizeReply) &&>;

// Whether a worker whose last call was this long ago still calls. A busy worker calls every second,
// and the call of an idle one is held, but a silent worker counts as disconnected only later.
inline bool HasCalledAfter(absl::Duration silent) { return silent < absl::Seconds(5); }

// A lease that a worker has started, for lists.
struct Activity {
  std::shared_ptr<const WorkItem> work;
  bool running = false;     // it checks or measures the candidate; otherwise it builds it
  absl::Duration duration;  // since the server learned that it builds or runs the candidate
  int attempt = 1;          // of the item
};

// A registered worker, for lists and look-ups.
struct WorkerInfo {
  std::string id;
  std::string identity;  // see IdentityOf
  Capabilities capabilities;
  bool connected = false;
  bool drained = false;   // an administrator has drained it
  bool stopping = false;  // its last call announced its end, so it is not connected
  std::string flagged;    // why it is refused; "" if it is not
  absl::Duration silent;  // time since its last call; infinite if it has not called since the start
  int leases = 0;
  std::string last_error;
  record::MachineState machine;      // of its last result
  std::vector<Activity> activities;  // its leases that it has started, the oldest first

  bool HasCalled() const { return HasCalledAfter(silent); }
  // Returns whether it takes work.
  bool TakesWork() const {
    return connected && !drained && !stopping && flagged.empty() && HasCalled();
  }
};

// Work of a job that workers hold which do not call.
struct SilentWork {
  WorkerInfo worker;    // one of them
  int items = 0;        // that they hold
  bool is_all = false;  // the job has no other work
};

// The stored state of a worker: what an administrator decided, and whether its results are trusted.
// A refusal is of this name, and of every other name that the same worker gives itself.
struct Standing {
  std::string worker_id;
  std::string identity;  // of a refused worker (IdentityOf); "" if it had no credentials
  bool drained = false;
  std::string refused;   // why it is refused; "" if it is not
  bool removed = false;  // refused because an administrator removed it, not because of a flag
  friend bool operator==(const Standing&, const Standing&) = default;
};

// A change of a worker's standing that is not known to be stored.
struct UnstoredStanding {
  Standing standing;
  int64_t number = 0;  // of the change
};

// Counters of the fleet, for metrics and tests.
struct FleetCounts {
  int64_t workers_connected = 0;
  int64_t workers_away = 0;
  int64_t workers_refused = 0;  // flagged or removed
  int64_t items_waiting = 0;
  int64_t items_leased = 0;
  // Since the start.
  int64_t granted = 0;
  int64_t results = 0;          // delivered to their jobs
  int64_t refused_results = 0;  // impossible, or of a stale lease or a refused call
  int64_t requeued = 0;         // leases that ended without an answer
  int64_t stolen = 0;           // leases queued at one worker and given to another
  int64_t poisoned = 0;
  int64_t build_mismatches = 0;  // artifacts that a second build of the same candidate did not give
};

// The deadlines of all states and the limits of all queues.
struct FleetOptions {
  // A worker calls at least this often, and the server holds a call for at most this long. A worker
  // that has not called for twice this time is lost.
  absl::Duration heartbeat = absl::Seconds(10);
  absl::Duration max_wait() const { return heartbeat; }
  absl::Duration silence_limit() const { return 2 * heartbeat; }
  // A worker without free slots is told to call again when it has finished a lease, or after this
  // time. Holding its call would be useless, because it cannot take more leases.
  absl::Duration rest() const { return heartbeat / 10; }
  // The process with a worker's name keeps the name while one of its calls is held, and for this
  // long after its last call. A later process with the same name asks for it again this often, and
  // a removed worker asks this often whether it was resumed.
  absl::Duration name_limit() const { return heartbeat / 2; }
  // A lease ends this long after it was granted, even if its worker still reports it. The limits
  // for compiling and running are far shorter.
  absl::Duration lease_limit = absl::Minutes(5);
  // A lost worker is forgotten this long after its last call.
  absl::Duration forget_after = absl::Minutes(10);
  // A worker that still holds a lease after it was told to stop it is told again after this time.
  absl::Duration cancel_retry = absl::Seconds(2);
  // A worker that has not uploaded a requested artifact is asked again after this time.
  absl::Duration keep_retry = absl::Seconds(10);
  // A lease that has been queued at its worker for this long may be given to an idle worker.
  absl::Duration steal_after = absl::Seconds(2);
  // An item comes back as device_lost after this many attempts without an answer.
  int max_attempts = 5;
  // If a worker answers device_lost, the item is tried again until it has this many such answers.
  int max_device_errors = 3;
  // An item comes back as device_lost if this many workers were lost while they ran only this item.
  int max_killed_workers = 2;
  // Maximum number of items that wait or are leased, of one owner and of all owners.
  int64_t max_items_per_owner = 16384;
  int64_t max_items = 65536;
  int64_t max_workers = 10000;
  // Maximum number of calls that wait for a first worker of their target.
  size_t max_target_waits = 1024;
  // Prefix of lease ids, which makes them unique across restarts of the server. "": a random one.
  std::string instance;
  // Called with the id of a worker that was flagged, on the caller's thread and without the fleet's
  // lock. May be null.
  std::function<void(const std::string& worker_id)> on_standing;
  // Called in the same way when a second process uses a worker's name, with a text about it.
  std::function<void(const std::string& worker_id, const std::string& rival)> on_rival;
  // Called in the same way when a worker joins, is lost, comes back or leaves, and when it is
  // drained, removed or resumed, with a text such as "joined: target t on host pi, runs kernels".
  std::function<void(const std::string& worker_id, const std::string& event)> on_event;
  // A second process is mentioned in the list of workers for this long after its last call.
  absl::Duration rival_limit() const { return 3 * name_limit(); }
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORKER_H_
