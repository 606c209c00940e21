#ifndef HONE_SERVER_TASK_JOB_MESSAGES_H_
#define HONE_SERVER_TASK_JOB_MESSAGES_H_

// The templates of Job, for its own sources.

#include <utility>

#include "server/task/exceptions.h"
#include "server/task/job.h"
#include "server/task/record_policy.h"

namespace hone::task {

template <typename Function>
void Job::PostCall(Function function) {
  strand_.Post([self = shared_from_this(), function = std::move(function)]() mutable {
    if (self->suspended_) return;
    self->doing_ = "searching";
    const absl::Status threw = CatchExceptions([&] { function(*self); });
    if (!threw.ok()) self->OnException(threw);
  });
}

template <typename Then>
void Job::EnterStep(const char* name, Then then) {
  StoreStep(name, [self = shared_from_this(), then = std::move(then)]() mutable {
    self->PostCall([then = std::move(then)](Job& job) mutable {
      job.step_pending_ = false;
      if (HasEnded(job.state_.state)) return;
      then(job);
    });
  });
}

template <typename Then>
void Job::Log(store::JobEvent event, Then then) {
  event.fence = state_.fence;
  services_.store->AppendEvent(
      std::move(event),
      [self = shared_from_this(), then = std::move(then)](absl::Status status) mutable {
        self->PostCall([status, then = std::move(then)](Job& job) mutable {
          status.ok() ? then(job) : job.OnNotStored(status);
        });
      });
}

template <typename Then>
void Job::Commit(record::Record record, int64_t event, fleet::WorkResult result,
                 fleet::Acknowledge acknowledge, Then then) {
  record.result = std::move(result.result);
  record.environment = std::move(result.environment);
  record.created_unix_ms = absl::ToUnixMillis(Now());
  if (record.result.outcome == record::Outcome::kOk && !(record.result.latency_ns > 0)) {
    record.result.outcome = record::Outcome::kCrash;
    record.result.detail = "the worker reported no latency";
  }
  record.quarantine_reason = WhyOutOfPolicy(record);
  record.quarantined = !record.quarantine_reason.empty();
  services_.store->Append(
      std::move(record), Fence(event),
      [self = shared_from_this(), acknowledge = std::move(acknowledge), then = std::move(then),
       worker = std::move(result.worker_id), peak = result.peak_gflops,
       read = result.read_gbps](absl::StatusOr<record::Record> stored) mutable {
        if (stored.ok()) std::move(acknowledge)();
        self->PostCall([stored = std::move(stored), then = std::move(then),
                        worker = std::move(worker), peak, read](Job& job) mutable {
          if (!stored.ok()) return job.OnNotStored(stored.status());
          if (peak > 0) job.peak_gflops_ = peak;
          if (read > 0) job.read_gbps_ = read;
          then(job, *std::move(stored), worker);
        });
      });
}

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JOB_MESSAGES_H_
