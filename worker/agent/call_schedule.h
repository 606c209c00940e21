#ifndef HONE_WORKER_AGENT_CALL_SCHEDULE_H_
#define HONE_WORKER_AGENT_CALL_SCHEDULE_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

// Returns a delay that grows with the number of consecutive failures. The delay is partly random,
// so that workers do not all call again at the same time.
absl::Duration BackoffAfter(int failures);

// Decides when the worker calls the server: soon if the worker has news, such as results; otherwise
// at the time that the server's last answer set. At most two calls are in progress, so that news
// can be sent while the server holds a call open. It has neither threads nor a clock. Guarded
// by the worker's mutex.
class CallSchedule {
 public:
  // Returns when the next call begins if nothing else happens. InfiniteFuture: the next call must
  // wait until a call in progress ends or there is news. `results`: the worker has results that no
  // call carries or has delivered. `stocked`: the worker has enough work left, so a result may wait
  // to share a call with later results.
  absl::Time Next(bool results, bool stocked) const;
  // Asks for a call even if there are no results.
  void AddNews() { news_ = true; }

  // Begins a call and returns its number.
  int64_t Begin(bool carries_results, absl::Time now);
  // Ends a call that failed. The delay before the next call grows with each consecutive failure. If
  // the server refused the call, an administrator must act first, so the delay is longer.
  void Fail(int64_t call, bool refused, absl::Time now);
  // Ends a call that was answered. Returns whether the last call that ended before it failed.
  bool Answer(int64_t call, const v1::SynchronizeResponse& response, absl::Time now);

  bool IsInProgress(int64_t call) const { return calls_.contains(call); }
  bool IsIdle() const { return calls_.empty(); }
  // How long the server may hold the next call open: 0 until the server has answered a call since
  // the start or the last failure, so that this answer comes at once. Then the heartbeat that the
  // server last set; it does not consider a worker lost that calls at this interval.
  absl::Duration MayHold() const { return answers_ ? heartbeat_ : absl::ZeroDuration(); }

 private:
  struct Call {
    absl::Time begun;
    bool results = false;  // whether it carries results
  };
  bool news_ = true;
  int64_t last_call_ = 0;
  absl::flat_hash_map<int64_t, Call> calls_;  // in progress
  absl::Time next_call_;                      // no call begins earlier
  absl::Time next_idle_call_;                 // without news, no call begins earlier
  absl::Time gather_until_;                   // while stocked, news waits until then
  int failures_ = 0;                          // consecutive
  bool answers_ = false;                      // whether the last call that ended was answered
  absl::Duration heartbeat_ = absl::Seconds(10);
};

// Decides which failed calls are logged: the first one, and one that fails in another way, at once;
// later ones when the reason has changed, after 10 s, then 20 s and so on; and each hour in any
// case. A reason can contain the time of day, and the real one is only found after a while, for
// example that a wrong clock makes certificates seem expired.
class FailureLog {
 public:
  bool IsToBeLogged(const absl::Status& failure, absl::Time now);
  void NoteAnswer() { last_ = absl::OkStatus(); }

 private:
  absl::Status last_;  // that was logged; OK: the last call was answered
  absl::Time logged_at_;
  absl::Duration interval_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_CALL_SCHEDULE_H_
