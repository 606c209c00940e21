#ifndef HONE_SERVER_TASK_SPOT_CHECK_H_
#define HONE_SERVER_TASK_SPOT_CHECK_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/record/record.h"

namespace hone::task {

// The opinions of other workers on a finalist, asked for one after the other before it is
// published: a worker that is broken or lies must not publish a wrong result. One worker that
// agrees is enough; two that disagree reject the finalist.
//
// Pure logic: no time, no I/O. Not thread-safe.
class SpotCheck {
 public:
  // `worker`: the one that confirmed the finalist, with this steady latency.
  SpotCheck(std::string worker, double latency_ns)
      : asked_{std::move(worker)}, claimed_(latency_ns) {}

  enum class Verdict { kOpen, kConfirmed, kRejected };
  Verdict verdict() const { return verdict_; }
  // What the first worker that disagreed found.
  const std::string& objection() const { return objection_; }
  const std::string& claimant() const { return asked_[0]; }
  // The worker that disagreed, if another one agreed with the claimant since; else "".
  std::string Outvoted() const;

  // The workers that need not be asked: the claimant and those that were asked.
  const std::vector<std::string>& asked() const { return asked_; }
  bool IsWaiting(absl::Time now) const { return now < deadline_; }
  // Whether the last worker did not answer in time.
  bool IsLate(absl::Time now) const {
    return deadline_ != absl::InfinitePast() && now >= deadline_;
  }
  void Ask(std::string worker, absl::Time deadline);
  // The answer of the worker that was asked last. Later answers than the deadline change nothing.
  void Report(absl::Time now, const std::string& worker, const record::MeasureResult& result);
  // No other worker will answer. What is known decides; the claimant is believed otherwise.
  void Close();

 private:
  std::vector<std::string> asked_;
  const double claimed_;
  absl::Time deadline_ = absl::InfinitePast();  // of the answer that is waited for
  Verdict verdict_ = Verdict::kOpen;
  std::string objector_, objection_;
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_SPOT_CHECK_H_
