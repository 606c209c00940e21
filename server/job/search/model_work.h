#ifndef HONE_SERVER_JOB_SEARCH_MODEL_WORK_H_
#define HONE_SERVER_JOB_SEARCH_MODEL_WORK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/record/record.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/cost_model.h"

namespace hone::job {

// Returns whether a latency is between a nanosecond and an hour. Results outside this range are not
// used for training: labels of a model are relative to the best latency of a task, so one absurd
// latency would spoil all of them.
inline bool IsPlausibleLatency(double nanoseconds) {
  return nanoseconds >= 1 && nanoseconds <= 3.6e12;  // false for NaN
}

// A measured candidate.
struct RecordedCandidate {
  record::Candidate candidate;
  double latency_ns = 0;  // steady (record::SteadyLatencyNs); 0: failed
};

// The measurements of one workload on one target, for training and evaluating cost models.
struct RecordedTask {
  std::string workload_digest;
  std::string op;
  std::string target_key;
  std::string target;  // text form
  // Every candidate once, sorted by digest. The order thus does not depend on when each was found.
  std::vector<RecordedCandidate> candidates;
};

struct RecordedTaskQuery {
  std::string target;  // key; "": the target with the most records
  std::string op;      // "": every operator
  // Maximum number of records to use: a random sample of each workload, of the same size for all
  // workloads that have as many. At least 1.
  int64_t max_records = 4000;
};

// The number of measurements that cannot be used, by reason.
struct LeftOut {
  int64_t quarantined = 0;
  int64_t implausible = 0;     // ok, with an impossible latency
  int64_t unknown_target = 0;  // no stored job describes the target
  int64_t not_replayed = 0;    // the space is not stored, or the candidate is stale

  int64_t Total() const { return quarantined + implausible + unknown_target + not_replayed; }
  // Returns the reasons that occurred, as text, with their counts.
  std::vector<std::pair<std::string, int64_t>> Reasons() const;
  // Returns a text such as "12 left out: 10 quarantined, 2 …"; "" if nothing was left out.
  std::string ToText() const;
};

struct RecordedTasks {
  std::string target;               // key
  std::string target_text;          // with the calibration of a job of that target
  std::vector<RecordedTask> tasks;  // by workload digest
  int64_t records = 0;              // number of usable records
  LeftOut left_out;
};

// Reads screened trials from the store, without confirmations, which measure the same candidates
// again. If a candidate was measured twice, the later record counts. The description of the target
// comes from any stored job, because devices with the same target key are interchangeable. Reads
// page by page, and holds about twice `max_records` candidates of each target at most. `stop` is
// called for each page; its error ends the call. NotFound: there are no such records; the message
// says what to do. Other errors are those of the store.
absl::StatusOr<RecordedTasks> ReadRecordedTasks(store::Store& store, const RecordedTaskQuery& query,
                                                const std::function<absl::Status()>& stop);

// The feature rows and latencies of a recorded task: candidate i of `features` took latency_ns[i]
// (0: failed).
struct TaskRows {
  std::string workload_digest;
  std::string op;
  cost_model::FeatureMatrix features;
  std::vector<double> latency_ns;
  double best_ns = 0;  // 0: no candidate ran
  int left_out = 0;    // candidates that do not replay with this program

  int candidates() const { return static_cast<int>(latency_ns.size()); }
  // Returns the label for CostModel::Update.
  double Throughput(int i) const { return latency_ns[i] > 0 ? best_ns / latency_ns[i] : 0; }
};

// Replays the candidates and extracts their rows. `feature_set` is "" for models that read no
// features. `pause` is called every few milliseconds, to release locks; its error is returned.
// Candidates are left out if their space is not stored or this version of the program refuses it.
// NotFound: the feature set is unknown.
absl::StatusOr<std::vector<TaskRows>> ExtractRows(const TaskEnvironment& environment,
                                                  store::Store& store,
                                                  absl::Span<const RecordedTask> tasks,
                                                  const std::string& feature_set,
                                                  const std::function<absl::Status()>& pause);

// Feature rows with labels, for training or evaluation.
struct LabelledRows {
  cost_model::FeatureMatrix features;
  std::vector<double> throughput;
  std::vector<int32_t> tasks;

  // Adds candidate i of the task with a number. REQUIRES: the same feature set in all calls.
  void Add(const TaskRows& task, int32_t number, int i);
  cost_model::Labels labels() const { return {throughput, tasks}; }
};

// A model by its registered name, and its feature set ("": the model's default).
struct ModelChoice {
  std::string name;
  std::string feature_set;
  // Only for an evaluation, instead of a name: the row of a stored model. It is judged as it is on
  // the records of all tasks, which it may have been trained on if this server trained it.
  int64_t stored = 0;
};

struct EvaluationQuery {
  RecordedTaskQuery records;  // without a target: that of the first stored model, if there is one
  std::vector<ModelChoice> models;
  // Tasks to hold out: names of operators, or prefixes of workload digests with at least 6 digits.
  std::vector<std::string> held_out;
  // Share of every task's trials to hold out, in (0, 1), or 0. If this is 0 and `held_out` is
  // empty, two evaluations are done: with 0.3 of the trials held out, and with each of the five
  // largest tasks held out in turn.
  double held_out_trials = 0;
  uint64_t seed = 0;
  int k = 16;  // for peak@k and recall@k
};

// The quality of a model on candidates that it was not trained on.
// server/tuner/cost_model/metric_*.h defines the metrics. Top-k is computed over all tasks. Peak,
// recall and pairwise accuracy (of pairs that differ by more than 3 % of the best) are means over
// tasks; the others are means over candidates.
struct ModelScore {
  std::string model;
  std::string feature_set;
  std::string held_out;      // "tasks" or "trials"; "stored": nothing, the model was stored
  int64_t stored = 0;        // the row of a stored model
  int64_t trained_on = 0;    // candidates, mean over the trainings
  int64_t evaluated_on = 0;  // candidates
  int64_t tasks = 0;         // of these candidates
  double top1 = 0, top5 = 0, peak = 0, recall = 0, pairwise = 0;
  double rmse = 0, calibration_error = 0;
  // The shares of candidates within one and two spreads; NaN if the model has no spread.
  double coverage1 = std::numeric_limits<double>::quiet_NaN();
  double coverage2 = std::numeric_limits<double>::quiet_NaN();
  double predict_us = 0;  // per candidate, without extracting features
  double train_ms = 0;    // mean over the trainings; NaN without any
};

struct ModelEvaluation {
  std::string target;  // key
  int64_t tasks = 0;
  int64_t candidates = 0;
  LeftOut left_out;                // measurements that were not used
  std::vector<ModelScore> scores;  // per model, for tasks and for trials
};

// The services that an evaluation uses. All of them must outlive it.
struct EvaluationServices {
  const Clock* clock = nullptr;  // for durations
  store::Store* store = nullptr;
  const TaskEnvironment* environment = nullptr;
  // Called every few milliseconds and between trainings, which take longer. An error ends the
  // evaluation.
  std::function<absl::Status()> pause;
};

// Trains every model on the candidates that are not held out and evaluates it on the others; stored
// models are evaluated on all. NotFound: there are too few measurements (the message says how many
// are needed), no such stored model, or an unknown model or task to hold out (the message lists the
// tasks). InvalidArgument: a share or k is out of range, there are no models, a model cannot read
// its feature set, or a stored model cannot be loaded. FailedPrecondition: a model is not in this
// build.
absl::StatusOr<ModelEvaluation> EvaluateModels(const EvaluationServices& services,
                                               const EvaluationQuery& query);

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
  // the background (draft_work.h). Afterwards nothing is learned for ten times as long as that
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
