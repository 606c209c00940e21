#ifndef HONE_SERVER_JOB_SEARCH_TASK_SEARCH_H_
#define HONE_SERVER_JOB_SEARCH_TASK_SEARCH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/digest.h"
#include "server/job/actor/job_codec.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/search/search_strategy.h"

namespace hone::job {

// Returns a digest that is equal for equal candidates, on every machine.
Digest CandidateDigest(const record::Candidate& candidate);

// Trains the cost model of a task in the background. It keeps the feature rows of every measured
// candidate and trains each new model on all of them. Used by one thread at a time.
class Trainer {
 public:
  // REQUIRES: the model's name is registered.
  Trainer(const TaskEnvironment* environment, const TaskSpaces* spaces, std::string model,
          cost_model::CostModelOptions options)
      : environment_(environment),
        spaces_(spaces),
        model_(std::move(model)),
        options_(std::move(options)) {}

  // Adds `fresh` to the known results and trains a new model on all of them, except for candidates
  // without features.
  absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> Train(
      absl::Span<const search::Measured> fresh);

 private:
  const TaskEnvironment* const environment_;
  const TaskSpaces* const spaces_;
  const std::string model_;
  const cost_model::CostModelOptions options_;
  cost_model::FeatureMatrix features_;
  std::vector<double> latencies_;  // per candidate of features_; 0: failed
};

struct TaskSearchOptions {
  std::string strategy;  // kExternalStrategy: there is none, and Propose is not called
  std::string cost_model;
  std::string feature_set;  // "": the model's own
  uint64_t seed = 0;
  bool quick_start = false;  // a first choice must cost little, because it is one of many tasks
  int64_t prior_record = 0;  // see ProposeEvent
  int64_t first_event = 0;   // number of its first event
  int64_t first_trial = 1;   // 0 is the default schedule
};

// The search of one task: the strategy, the model, and the numbered events that make it
// reproducible. If a search replays the events of another one, with the same spaces, seed, earlier
// records and draft, it reaches the same state and proposes the same candidates. Does no I/O and
// does not depend on time. Used by one thread at a time.
class TaskSearch {
 public:
  // `prior` are earlier results of this task, which are told first. NotFound: unknown strategy or
  // model. InvalidArgument: the model's feature set cannot describe candidates of these spaces.
  static absl::StatusOr<std::unique_ptr<TaskSearch>> Create(const TaskEnvironment* environment,
                                                            const TaskSpaces* spaces,
                                                            TaskSearchOptions options,
                                                            std::vector<search::Measured> prior);

  // Proposes up to n candidates. Only legal candidates that were neither measured nor proposed
  // before get a trial. If there are no proposals at all, the spaces are exhausted.
  absl::StatusOr<ProposeEvent> Propose(int n);
  // Adds a candidate that another program proposes and that is not known. It gets a trial.
  ExternalEvent AddExternal(std::string proposer, record::Candidate candidate);
  // Notes that a candidate was proposed or measured, so that it is not proposed again.
  void Know(const record::Candidate& candidate) { known_.insert(CandidateDigest(candidate)); }
  // Returns whether a candidate was measured or proposed, also by earlier jobs.
  bool IsKnown(const record::Candidate& candidate) const;
  // Tells the search a result. The default schedule is trial 0.
  void Tell(int64_t trial, const search::Measured& measured);
  // Returns the results told since the last call, as one event; nullopt if there are none. Call it
  // before each Propose, whose event must follow them. The division of results into events does not
  // matter.
  std::optional<TellEvent> TakeTells();

  // When training is due, take the new results, train in another thread, and adopt the model. Only
  // one training at a time.
  bool TrainingIsDue() const;
  std::vector<search::Measured> TakeForTraining();
  std::shared_ptr<Trainer> trainer() const { return trainer_; }
  void AdoptModel(std::shared_ptr<const cost_model::CostModel> model);
  // Keeps the current model after a failed training, until there is more data.
  void AbandonTraining() { training_ = false; }

  // Repeats the events of a job in order, and trains the model wherever a Propose used it. Aborted:
  // a proposal differs, because the program or its inputs have changed; the search must then be
  // discarded.
  absl::Status Replay(absl::Span<const store::JobEvent> events,
                      const record::Candidate& default_schedule);

  // Candidates by trial, without the default schedule.
  const std::map<int64_t, record::Candidate>& trials() const { return trials_; }

 private:
  TaskSearch(const TaskSpaces* spaces, TaskSearchOptions options)
      : spaces_(spaces), options_(std::move(options)) {}
  void TellStrategy(const search::Measured& measured);
  absl::Status ReplayPropose(const ProposeEvent& event);
  absl::Status ReplayExternal(const ExternalEvent& event);
  absl::Status ReplayTells(const TellEvent& event, const record::Candidate& default_schedule);

  const TaskSpaces* const spaces_;
  const TaskSearchOptions options_;
  std::unique_ptr<search::SearchStrategy> strategy_;  // null: kExternalStrategy
  std::shared_ptr<Trainer> trainer_;                  // null: the model reads no features
  std::shared_ptr<const cost_model::CostModel> model_;
  std::vector<search::Measured> tells_;  // all results told to the strategy, in order
  size_t trained_tells_ = 0;             // known to the current model
  size_t taken_tells_ = 0;               // passed to the trainer
  bool training_ = false;
  int64_t model_version_ = 0;
  std::vector<TellEvent::Told> untaken_;
  int64_t next_event_ = 0;
  int64_t step_ = 0;  // Proposes and results so far; determines the strategy's draws
  int64_t next_trial_ = 0;
  std::map<int64_t, record::Candidate> trials_;
  absl::flat_hash_set<Digest> known_;  // measured or proposed
};

// Returns the search options that the job's request determines. The others depend on stored
// results.
TaskSearchOptions SearchOptionsOf(const JobSpec& spec);

// Returns the part of a time limit that is reserved for the confirmation. `step`: how long one
// measurement takes now. On a busy machine, the usual reserve may suffice for none.
absl::Duration ConfirmationTime(absl::Duration max_time, absl::Duration step);
// If nothing was measured when the time of a job is over, the job waits this much longer for a
// first result, unless no worker takes its work: for that of its search, or that of a finalist.
inline constexpr absl::Duration kFirstResultGrace = absl::Milliseconds(1200);
// The same if the time was over before the job submitted its first work.
inline constexpr absl::Duration kLateResultGrace = absl::Seconds(10);
// The limit of the confirmation of a cancelled job, for all its tasks together. It is short because
// the user who cancelled the job waits for its end.
inline constexpr absl::Duration kConfirmationAfterCancel = absl::Seconds(30);
// Returns how long the confirmation of `tasks` tasks may take, all together, in a job without a
// time limit or in a cancelled one, after a search that took `searched`.
absl::Duration ConfirmationLimit(absl::Duration searched, bool cancelled, int64_t tasks = 1);

// Returns the number of candidates of each Propose, unless fewer trials are left.
int BatchSizeOf(const JobSpec& spec, const JobOptions& options);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_TASK_SEARCH_H_
