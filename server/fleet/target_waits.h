#ifndef HONE_SERVER_FLEET_TARGET_WAITS_H_
#define HONE_SERVER_FLEET_TARGET_WAITS_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/fleet/deferred_calls.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

using TargetDone = absl::AnyInvocable<void(absl::StatusOr<TargetChoice>) &&>;

// Calls that wait for a worker of a target, by the target's key; "" stands for the only target
// there is. Not thread-safe: its owner locks.
class TargetWaits {
 public:
  // At most `most` calls wait. The others outlive it.
  TargetWaits(size_t most, const WorkerRegistry* registry, DeferredCalls* deferred)
      : most_(most), registry_(*registry), deferred_(*deferred) {}

  // Answers at once if the target can be chosen or can never be, or else when a worker of it comes.
  // ResourceExhausted: too many calls wait. Unavailable: after Close.
  void Await(const std::string& key, absl::Time deadline, TargetDone done);
  // A worker of the target has come.
  void Answer(const std::string& key);
  // Calls whose deadline has come get FailedPrecondition; the message says what to do.
  void Expire(absl::Time now);
  // Answers every call, and later ones at once.
  void Close();
  size_t size() const { return waits_.size(); }

 private:
  struct Wait {
    absl::Time deadline;
    TargetDone done;
  };
  void AnswerKey(const std::string& key);

  const size_t most_;
  const WorkerRegistry& registry_;
  DeferredCalls& deferred_;
  std::multimap<std::string, Wait> waits_;
  bool closed_ = false;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_TARGET_WAITS_H_
