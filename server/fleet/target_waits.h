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

// Calls that wait for a worker of a target, by the target's key. The key "" stands for the only
// target of all workers. Not thread-safe: the owner must lock.
class TargetWaits {
 public:
  // At most `most` calls may wait. REQUIRES: the other objects outlive this one.
  TargetWaits(size_t most, const WorkerRegistry* registry, DeferredCalls* deferred)
      : most_(most), registry_(*registry), deferred_(*deferred) {}

  // Answers at once if a worker of the target is registered or `key` is ambiguous, and otherwise
  // when such a worker registers, or Expire is called after `patience`. FailedPrecondition: `key`
  // is "" and there are several targets. ResourceExhausted: too many calls wait. Unavailable: Close
  // was called.
  void Await(const std::string& key, absl::Time now, absl::Duration patience, TargetDone done);
  // Called when a worker of the target has registered.
  void Answer(const std::string& key);
  // Answers the calls that have waited long enough with FailedPrecondition; the message names the
  // time, the target and those that are registered, and says what to do.
  void Expire(absl::Time now);
  // Answers all waiting calls, and later ones at once, with Unavailable.
  void Close();
  size_t size() const { return waits_.size(); }

 private:
  struct Wait {
    absl::Time deadline;
    absl::Duration patience;
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
