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

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/fleet/standings.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

struct TargetChoice {
  std::string key;
  std::string text;
};

// What a worker is to be told in the next answer to it.
struct WorkerNews {
  std::vector<std::string> resend;  // leases that were granted and not restated since
  std::vector<std::string> cancel;
  std::vector<std::string> durable;
  std::map<std::string, absl::Time> keep;  // artifact digest → when to ask for it (again)
  bool standing_told = false;
};

// The results of a worker that went to be committed, those whose commit has ended, and how many of
// these news waits for. News waits for the commits that were under way when it began to wait: a
// stream of results would hold it back otherwise.
struct CommitCount {
  int64_t begun = 0;
  int64_t ended = 0;
  int64_t awaited = 0;
  void Await() {
    if (!IsAwaited()) awaited = begun;
  }
  // A worker that was forgotten meanwhile has begun none.
  void End() { ended = std::min(ended + 1, begun); }
  bool IsAwaited() const { return ended < awaited; }
};

struct Worker {
  std::string id;
  std::string epoch;
  std::string identity;                 // bound to the id by its first call
  std::deque<std::string> past_epochs;  // of processes that were replaced
  Capabilities capabilities;
  bool connected = false;
  bool leaving = false;  // it has announced that it will end
  // It retries a suspect item, alone, and gets nothing else until that is done.
  bool solo = false;
  absl::Time last_seen;
  std::string last_error;
  record::MachineState machine;
  int free_build_slots = 0;
  int free_run_slots = 0;
  CommitCount commits;
  WorkerNews news;
  // Leases that do not belong to it any more and that it still held, with the time when it was last
  // told to stop them.
  std::map<std::string, absl::Time> unknown_leases;

  bool CanRun(const std::string& target_key) const {
    return capabilities.can_run && capabilities.target_key == target_key;
  }
  bool CanBuild(const std::string& target_key) const;
};

// Why a call is not taken in.
struct TurnedAway {
  std::string why;
  bool soon = false;  // the reason may end at any time: the worker asks again soon
};

// The workers that are registered: those that are connected, and those that were lost a short time
// ago. Not thread-safe: its owner locks.
class WorkerRegistry {
 public:
  // `standings` outlives it.
  explicit WorkerRegistry(const Standings* standings) : standings_(standings) {}

  Worker* Find(const std::string& id);
  const Worker* Find(const std::string& id) const;
  Worker& At(const std::string& id) { return workers_.at(id); }
  // The worker of that name, which is registered if it is new.
  Worker& Add(const std::string& id);
  void Erase(const std::string& id);
  std::map<std::string, Worker>& all() { return workers_; }
  const std::map<std::string, Worker>& all() const { return workers_; }
  int64_t size() const { return static_cast<int64_t>(workers_.size()); }

  void SetCapabilities(Worker& worker, Capabilities capabilities);
  // Why the call is not taken in at all: its name was removed, or belongs to another worker or to a
  // newer process, or there are `most` workers already. nullopt if it is taken in. `is_alive`: the
  // process that has the name still calls.
  std::optional<TurnedAway> WhyTurnedAway(const WorkerReport& report, int64_t most,
                                          bool is_alive) const;
  // Takes over what the call says of its worker. Returns whether work may have come within reach of
  // a worker: this one is new here, or has another target than before.
  bool Update(Worker& worker, WorkerReport& report, absl::Time now);

  // Targets of the workers that run what is built for them.
  std::set<std::string> Targets() const;
  // A worker that may run the target is registered.
  bool HasRunner(const std::string& target_key) const;
  // Gives the environments of workers that only run the version of the newest builder that is
  // connected and builds for them, as their next records will have it.
  void AddBuilders(std::vector<WorkerInfo>& workers) const;
  // The first worker of the target by its id that knows its peak, or else the first.
  std::optional<Capabilities> DeviceOf(const std::string& target_key) const;
  std::vector<const Worker*> OfTarget(const std::string& target_key) const;
  // The target with this key, or with "" the only one there is. Unavailable: no worker has it yet.
  // FailedPrecondition: "" and there are several.
  absl::StatusOr<TargetChoice> ChooseTarget(const std::string& key) const;
  // Why no worker may run the target, and what to do.
  std::string WhyNoRunner(const std::string& target_key) const;

 private:
  void RemoveFromTarget(const Worker& worker);
  BuilderVersion NewestBuilder(const std::string& target_key) const;

  const Standings* const standings_;
  std::map<std::string, Worker> workers_;
  std::map<std::string, std::set<std::string>> by_target_;  // worker ids by target key
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORKER_REGISTRY_H_
