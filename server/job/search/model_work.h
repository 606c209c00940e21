#ifndef HONE_SERVER_JOB_SEARCH_MODEL_WORK_H_
#define HONE_SERVER_JOB_SEARCH_MODEL_WORK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/job/job.h"
#include "server/job/search/model_evaluation.h"
#include "server/store/store.h"

namespace hone::job {

struct TrainingQuery {
  RecordedTaskQuery records;  // `op` is the scope of the model
  ModelChoice model;
  uint64_t seed = 0;
};

// The conditions that end the work for a client early.
struct WorkLimit {
  absl::Time deadline = absl::InfiniteFuture();
  std::function<bool()> cancelled;  // whether the client is gone; called from any thread
};

// Trains cost models on the store's records, stores them, and evaluates models. Works on a thread
// of the executor, on one request at a time; the server gives it an executor of its own, because a
// training of many seconds must not delay jobs. Holds the host's timing lock in shared mode and
// yields to timers, as searches do. Thread-safe. Must outlive its work.
//
// Errors in addition to those of EvaluateModels: ResourceExhausted: another request is in progress.
// DeadlineExceeded, Cancelled: see WorkLimit. Unavailable: the server is shutting down. Internal:
// the work threw an exception.
class ModelWork {
 public:
  ModelWork(const JobServices& services, bool respect_timing_lock)
      : services_(services), respect_timing_lock_(respect_timing_lock) {}

  void Evaluate(EvaluationQuery query, WorkLimit limit,
                absl::AnyInvocable<void(absl::StatusOr<ModelEvaluation>) &&> done);

  // Evaluates the model on a fifth of the trials if there are enough, trains it on all of them, and
  // stores it with the scores. `done` gets the row without its bytes.
  void Train(TrainingQuery query, WorkLimit limit,
             absl::AnyInvocable<void(absl::StatusOr<store::ModelRow>) &&> done);

  // Counts a result of a target, from any thread.
  void NoteResult(const std::string& target_key);
  // Called periodically. If a target has many new results, learns its draft from all of them, in
  // the background (learned_draft.h). Afterwards nothing is learned for ten times as long as that
  // took, so that a large fleet does not keep the server learning.
  void Tick();

  // Ends the current request at its next pause, and refuses new ones.
  void Stop() { stopped_ = true; }

 private:
  // Sets busy_, which the caller clears at its end. Unavailable, ResourceExhausted: see above.
  absl::Status TakeTurn();
  EvaluationServices Services(WorkLimit limit) const;
  // Returns the quality of the model on left-out trials, as JSON.
  absl::StatusOr<std::string> Judge(const TrainingQuery& query, const std::string& target,
                                    const EvaluationServices& services) const;
  // Reads from the store how many results of a target its learned draft knows, and how many it
  // does not know.
  void CountKnown(const std::string& target);
  absl::StatusOr<store::ModelRow> MakeModel(const TrainingQuery& query,
                                            const EvaluationServices& services) const;

  const JobServices services_;
  const bool respect_timing_lock_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> stopped_{false};
  absl::Mutex mutex_;
  bool learning_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time next_learning_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // By target: results since the last learning, and records that it used.
  std::map<std::string, int64_t> fresh_ ABSL_GUARDED_BY(mutex_), known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_MODEL_WORK_H_
