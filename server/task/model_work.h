#ifndef HONE_SERVER_TASK_MODEL_WORK_H_
#define HONE_SERVER_TASK_MODEL_WORK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/store.h"
#include "server/task/job.h"
#include "server/task/model_evaluation.h"

namespace hone::task {

struct TrainingQuery {
  RecordedTaskQuery records;  // `op` is the scope of the model
  ModelChoice model;
  uint64_t seed = 0;
};

// When what a client asked for is to end, whatever it has come to.
struct WorkLimit {
  absl::Time deadline = absl::InfiniteFuture();
  std::function<bool()> cancelled;  // the client has gone; may be called from any thread
};

// Cost models as their users see them: trained from the store's records into the store, and
// evaluated. Works on the executor's threads, one piece of work at a time; holds the host's timing
// lock shared and yields to timers, as searches do. Thread-safe; outlives what it has begun.
//
// Errors beside those of EvaluateModels: ResourceExhausted another piece of work is under way;
// DeadlineExceeded, Cancelled: the limit; Unavailable: the server stops.
class ModelWork {
 public:
  ModelWork(const JobServices& services, bool respect_timing_lock)
      : services_(services), respect_timing_lock_(respect_timing_lock) {}

  void Evaluate(EvaluationQuery query, WorkLimit limit,
                absl::AnyInvocable<void(absl::StatusOr<ModelEvaluation>) &&> done);

  // Evaluates the model on a fifth of the trials, when there are enough, trains it on all of them,
  // and stores it with what the evaluation came to. `done` gets the row without its bytes.
  void Train(TrainingQuery query, WorkLimit limit,
             absl::AnyInvocable<void(absl::StatusOr<store::ModelRow>) &&> done);

  // What is under way ends at its next pause, and nothing new begins.
  void Stop() { stopped_ = true; }

 private:
  // Whether the caller has the turn; it gives it back by clearing busy_.
  absl::Status TakeTurn();
  EvaluationServices Services(WorkLimit limit) const;
  absl::StatusOr<store::ModelRow> MakeModel(const TrainingQuery& query,
                                            const EvaluationServices& services) const;

  const JobServices services_;
  const bool respect_timing_lock_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> stopped_{false};
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_MODEL_WORK_H_
