#ifndef HONE_SERVER_FLEET_WORKER_REGISTRY_H_
#define HONE_SERVER_FLEET_WORKER_REGISTRY_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// Returns the quoted command that resumes a drained or refused worker.
std::string ResumeCommand(const std::string& id);
// Returns a clause for users that says how an administrator resumes the worker.
std::string HowToResume(const std::string& id);

// The standings of the workers that are drained or refused (flagged or removed), by name, and which
// changes of standings are not stored yet. Includes workers that are not connected. A worker is
// also refused under every other name of its identity. Thread-safe.
class Standings {
 public:
  // Returns the standing of a worker, which may be refused under another name. An unknown worker is
  // neither drained nor refused. `identity`: of the worker, if it is not registered yet.
  Standing Of(const std::string& id) const;
  Standing Of(const std::string& id, const std::string& identity) const;
  // Returns the standing that was set for this name.
  Standing Own(const std::string& id) const;
  // Returns the other name under which this worker is refused; "" if there is none.
  std::string RefusedAs(const std::string& id) const;
  // Whether the worker is neither drained nor refused.
  bool MayWork(const std::string& id) const;
  bool IsDrained(const std::string& id) const { return Of(id).drained; }
  // Returns every worker that is drained, flagged or removed, by name.
  std::map<std::string, Standing> all() const;
  int64_t refused_count() const;

  // Sets the identity (IdentityOf) of a registered worker; "" forgets it.
  void Identify(const std::string& id, const std::string& identity);
  std::string IdentityOf(const std::string& id) const;
  // Returns the names of the registered workers with the identity of this one, and its own.
  std::vector<std::string> NamesOf(const std::string& id) const;
  // Whether the worker is one of these, under this or another name.
  bool IsOneOf(const std::string& id, const std::vector<std::string>& others) const;

  // Sets a worker's standing, which must then be stored.
  void Change(const Standing& standing);
  // Returns the unstored change of a worker; nullopt if everything is stored.
  std::optional<UnstoredStanding> Unstored(const std::string& id) const;
  // Marks this change as stored, unless there is a newer one.
  void MarkStored(const UnstoredStanding& stored);

  // Takes over the stored standings. Called before workers call.
  void Adopt(const std::vector<Standing>& stored);

 private:
  Standing Get(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Identity(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the name under which this identity is refused; "" if it is not.
  std::string RefusedName(const std::string& identity) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Set(const Standing& standing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, Standing> known_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> identities_ ABSL_GUARDED_BY(mutex_);         // by name
  std::map<std::string, std::set<std::string>> refused_ ABSL_GUARDED_BY(mutex_);  // by identity
  // The number of the last change of each worker whose standing is not stored.
  std::map<std::string, int64_t> pending_ ABSL_GUARDED_BY(mutex_);
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct TargetChoice {
  std::string key;
  std::string text;
};

// News for a worker, sent with the next answer.
struct WorkerNews {
  std::vector<std::string> resend;  // granted leases that the worker's last report did not list
  std::vector<std::string> cancel;
  std::vector<std::string> durable;
  std::vector<std::string> stored;         // see SynchronizeReply
  std::map<std::string, absl::Time> keep;  // artifact digest → when to ask for it (again)
  bool standing_told = false;
};

// Counts the commits of a worker's results: how many have begun, how many have ended, and how many
// must have ended before news is sent. News waits only for the commits that had begun when the wait
// began; otherwise a stream of results could delay it indefinitely.
struct CommitCount {
  int64_t begun = 0;
  int64_t ended = 0;
  int64_t awaited = 0;
  void Await() {
    if (!IsAwaited()) awaited = begun;
  }
  // If the worker was forgotten and registered again, `begun` does not include this commit.
  void End() { ended = std::min(ended + 1, begun); }
  bool IsAwaited() const { return ended < awaited; }
};

struct Worker {
  std::string id;
  std::string epoch;
  std::string identity;  // credentials, bound to the id by the first call of the process
  // The processes that have used the name or asked for it, in the order in which they came. The
  // current process is one of them.
  std::deque<std::string> epochs;
  std::string claim;  // an earlier process that has asked for its name back once
  std::string rival;  // text about another process that uses the name; "" if none did
  absl::Time rival_seen = absl::InfinitePast();
  Capabilities capabilities;
  bool connected = false;
  bool leaving = false;  // its last call announced its end
  // The worker retries suspects one at a time, and gets no other items meanwhile.
  bool solo = false;
  absl::Time last_seen;
  std::string last_error;
  record::MachineState machine;
  int free_build_slots = 0;
  int free_run_slots = 0;
  CommitCount commits;
  WorkerNews news;
  // Leases that the worker still reports although they no longer belong to it, with the time when
  // it was last told to stop each.
  std::map<std::string, absl::Time> unknown_leases;

  bool CanRun(const std::string& target_key) const {
    return capabilities.can_run && capabilities.target_key == target_key;
  }
};

// Why a call is refused.
struct TurnedAway {
  // When the worker should ask again. kSoon: another process has its name and may end at any time,
  // or an administrator has removed it and may resume it. kNow: the worker had the name first, and
  // gets it back with its next call.
  enum class Again { kLater, kSoon, kNow };
  std::string why;
  Again again = Again::kLater;
};

// What is known of the process that has a worker's name.
enum class Presence {
  kGone,     // it has announced its end, or has been silent for too long
  kRecent,   // it has called a short time ago
  kCalling,  // one of its calls is held
};

// The registered workers: those that are connected, and those that were lost a short time ago. Not
// thread-safe: the owner must lock.
class WorkerRegistry {
 public:
  // REQUIRES: `standings` outlives this object.
  explicit WorkerRegistry(Standings* standings) : standings_(standings) {}

  Worker* Find(const std::string& id);
  const Worker* Find(const std::string& id) const;
  Worker& At(const std::string& id) { return workers_.at(id); }
  // Returns the worker of that name, and registers it if it is new.
  Worker& Add(const std::string& id);
  void Erase(const std::string& id);
  std::map<std::string, Worker>& all() { return workers_; }
  const std::map<std::string, Worker>& all() const { return workers_; }
  int64_t size() const { return static_cast<int64_t>(workers_.size()); }

  void SetCapabilities(Worker& worker, Capabilities capabilities);
  // Returns why the call is refused: its worker was removed, its name belongs to another worker or
  // process, or `most` workers are registered already. nullopt if the call is accepted. `presence`:
  // of the process that has the name. `now`: for the note about a second process.
  //
  // Of several processes with one name, the earliest one that still calls has the name. A process
  // that is new to the server takes it over at once, because usually the worker was restarted,
  // unless a call of the worker is held. If the earlier process calls twice after that, it was not
  // restarted, and gets its name back. One call could be a delayed message of a dead process.
  std::optional<TurnedAway> WhyTurnedAway(const WorkerReport& report, int64_t most,
                                          Presence presence, absl::Time now);
  // Updates the worker with the report of its call. Returns whether it may now be able to take
  // items that it could not take before: it has just connected, or its target or its ability to run
  // has changed.
  bool Update(Worker& worker, WorkerReport& report, absl::Time now);

  // Returns the targets for which a registered worker can run candidates.
  std::set<std::string> Targets() const;
  // Whether a registered worker may run the target.
  bool HasRunner(const std::string& target_key) const;
  // Completes the environments of workers that only run: each gets the version of the newest
  // connected builder for its target, which its next records will name.
  void AddBuilders(std::vector<WorkerInfo>& workers) const;
  // See Fleet::DeviceOf.
  std::optional<Capabilities> DeviceOf(const std::string& target_key) const;
  std::vector<const Worker*> OfTarget(const std::string& target_key) const;
  // See Fleet::FindTarget.
  absl::StatusOr<TargetChoice> ChooseTarget(const std::string& key) const;

 private:
  // Continues advice to start a worker with the refused workers that are not registered, whose
  // targets are unknown. "" if there are none.
  std::string OrAdmit() const;
  void RemoveFromTarget(const Worker& worker);
  static void NoteEpoch(Worker& worker, const std::string& epoch);
  static void NoteRival(Worker& worker, const std::string& host, absl::Time now);
  BuilderVersion NewestBuilder(const std::string& target_key) const;

  Standings* const standings_;
  std::map<std::string, Worker> workers_;
  std::map<std::string, std::set<std::string>> by_target_;  // worker ids by target key
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORKER_REGISTRY_H_
