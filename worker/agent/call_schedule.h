#ifndef HONE_WORKER_AGENT_CALL_SCHEDULE_H_
#define HONE_WORKER_AGENT_CALL_SCHEDULE_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

// Returns a random delay after consecutive failures, so that workers do not all return at once.
absl::Duration BackoffAfter(int failures);

// Decides when the worker calls the server: soon after it has news, otherwise at the time that the
// last answer set. At most two calls are in progress, one that the server holds and one with news.
// Pure state without threads or clocks; guarded by the worker's mutex.
class CallSchedule {
 public:
  // Returns when the next call begins if nothing else happens; InfiniteFuture: not before a call in
  // progress ends. `results`: there are results that no call has carried. `stocked`: enough work is
  // left that results can wait for others and share a call with them.
  absl::Time Next(bool results, bool stocked) const;
  // Asks for a call even if there are no results.
  void AddNews() { news_ = true; }

  // Begins a call and returns its number.
  int64_t Begin(bool carries_results, absl::Time now);
  // Ends a call that failed. The next one waits longer with each failure. Returns whether this is
  // the first failure in a row.
  bool Fail(int64_t call, absl::Time now);
  // Ends a call that was answered. Returns whether the call before it failed.
  bool Answer(int64_t call, const v1::SynchronizeResponse& response, absl::Time now);

  bool IsInProgress(int64_t call) const { return calls_.contains(call); }
  bool IsIdle() const { return calls_.empty(); }
  // How long the server may hold a call, as last set by the server. With this interval, the server
  // does not consider the worker lost.
  absl::Duration heartbeat() const { return heartbeat_; }

 private:
  struct Call {
    absl::Time begun;
    bool results = false;  // whether it carries results
  };
  bool news_ = true;
  int64_t last_call_ = 0;
  absl::flat_hash_map<int64_t, Call> calls_;  // in progress
  absl::Time next_call_;                      // not before this, …
  absl::Time next_idle_call_;                 // … nor before this without news
  absl::Time gather_until_;                   // results wait, if there is work left
  int failures_ = 0;                          // consecutive
  absl::Duration heartbeat_ = absl::Seconds(10);
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_CALL_SCHEDULE_H_
