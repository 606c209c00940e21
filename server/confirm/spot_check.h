#ifndef HONE_SERVER_CONFIRM_SPOT_CHECK_H_
#define HONE_SERVER_CONFIRM_SPOT_CHECK_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/record/record.h"

namespace hone::job {

// Collects the opinions of other workers on a finalist before it is published, because a broken or
// dishonest worker must not publish a wrong result. The workers are asked one after the other. One
// that agrees is enough; two that disagree reject the finalist.
//
// Pure logic: no time, no I/O. Not thread-safe.
class SpotCheck {
 public:
  // `worker` confirmed the finalist, with this steady latency.
  SpotCheck(std::string worker, double latency_ns)
      : asked_{std::move(worker)}, claimed_(latency_ns) {}

  enum class Verdict { kOpen, kConfirmed, kRejected };
  Verdict verdict() const { return verdict_; }
  // The finding of the first worker that disagreed.
  const std::string& objection() const { return objection_; }
  const std::string& claimant() const { return asked_[0]; }
  // Returns the worker that disagreed, if another one has agreed with the claimant since; otherwise
  // "".
  std::string Outvoted() const;

  // The claimant and the workers that were asked.
  const std::vector<std::string>& asked() const { return asked_; }
  bool IsWaiting(absl::Time now) const { return now < deadline_; }
  // Returns whether the last worker did not answer in time.
  bool IsLate(absl::Time now) const {
    return deadline_ != absl::InfinitePast() && now >= deadline_;
  }
  void Ask(std::string worker, absl::Time deadline);
  // Does without the answer of the worker that was asked last, so that another one can be asked.
  void StopWaiting() { deadline_ = absl::InfinitePast(); }
  // Adds the answer of the worker that was asked last. An answer after the deadline has no effect.
  void Report(absl::Time now, const std::string& worker, const record::MeasureResult& result);
  // Decides with the answers so far, because no other worker will answer. Without answers, the
  // claimant is believed.
  void Close();

 private:
  std::vector<std::string> asked_;
  const double claimed_;
  absl::Time deadline_ = absl::InfinitePast();  // for the pending answer
  Verdict verdict_ = Verdict::kOpen;
  std::string objector_, objection_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_SPOT_CHECK_H_
