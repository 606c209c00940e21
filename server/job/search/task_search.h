#ifndef HONE_SERVER_JOB_SEARCH_TASK_SEARCH_H_
#define HONE_SERVER_JOB_SEARCH_TASK_SEARCH_H_

#include <cstdint>
#include <functional>
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
#include "common/record/record.h"
#include "server/confirm/finalist.h"
#include "server/confirm/leader.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_codec.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/job_task.h"
#include "server/job/actor/task_environment.h"
#include "server/job/search/proposals.h"
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

// The stored results of a task.
struct EarlierResults {
  std::vector<search::Measured> prior;     // of other jobs, in the spaces that this one searches
  std::vector<record::Candidate> foreign;  // proposed to other jobs, in other spaces
  std::map<int64_t, record::Record> own;   // by trial
  std::vector<record::Record> again;       // repeated measurements of own candidates
  StoredDefault default_schedule;
  int64_t last_record = 0;  // of other jobs
};

search::Measured MeasuredOf(const record::Record& record);

// Reads the stored results of a task. Reads records of other jobs only up to `up_to_record` (-1:
// all of them), so that a continued search starts from the same records as before.
absl::StatusOr<EarlierResults> ReadEarlierResults(const JobActor& job, const JobTask& task,
                                                  int64_t up_to_record);

// The search of a job: it proposes candidates, keeps the fleet busy with them, tells the search
// their results, and trains the model in the background. Meanwhile, the best of the job is the
// leader (leader.h). Belongs to the job's strand.
class SearchPhase {
 public:
  // `on_done` is called once nothing is left to measure.
  SearchPhase(JobActor& job, JobTask& task, std::function<void()> on_done)
      : job_(job), task_(task), on_done_(std::move(on_done)) {}

  // Leaves the default schedule out, for a job that only measures and confirms its first choice.
  // Once the job is started again, its search measures it. REQUIRES: the phase has not begun.
  void SkipDefault() { skips_default_ = true; }
  // Continues the search where its stored events end.
  absl::Status Restore();
  // Submits proposed candidates that have no result, beginning with the default schedule.
  void Begin();
  // Proposes candidates if the fleet is about to run out of them. Ends the phase when it is over.
  void Pump();
  // Stops proposing. Work that has begun may finish.
  void Stop() {
    stopping_ = true;
    challenges_.Stop();
  }
  bool IsStopping() const { return stopping_; }
  // Returns whether the search has proposed candidates, or found that there are none.
  bool HasProposed() const { return Proposed() > 0 || exhausted_ || IsExternal(); }
  // Returns when the first candidates were submitted, if the time of the job was over by then;
  // otherwise the infinite past.
  absl::Time late_submission() const { return late_submission_; }
  // Returns the part of the time limit that is reserved for the confirmation, which depends on how
  // long the measurements have taken so far.
  absl::Duration ReservedTime() const;
  // Returns whether the job has measured all candidates that it may propose until more are allowed.
  bool IsIdle() const { return outstanding_ == 0 && IsOutOfAllowance(); }
  // Takes the schedules of another program that it can measure, stores them, and answers. `given`:
  // what was read of the traces of `proposals`.
  void Accept(const Proposals& proposals, std::vector<GivenCandidate> given, ProposalAnswer answer);
  // Called periodically. Resubmits candidates that the fleet had no room for, and calls Pump.
  void Tick();
  // Stores, as an event, the results that the search was told since the last event. Called before
  // each Propose and from time to time. Results whose event is lost in a crash are told again, in
  // the order of their trials.
  void LogTells();
  // Returns the results. REQUIRES: the phase is over.
  Found TakeFound();
  // For a job that ends without a confirmed best: shows the one that it confirmed before it was
  // resumed, or else, if no candidate took the lead, the fastest screened one.
  void ShowUnconfirmed();
  // Frees the search. Later messages change nothing.
  void Close();
  // Called before Close. Results that arrive are only counted, and nothing is proposed.
  void BeginClose() { closing_ = true; }

 private:
  struct Trial {
    record::Candidate candidate;
    int64_t event = -1;  // the event that proposed it; -1 for the default schedule
    bool told = false;
    bool waits = false;  // see waiting_
  };
  // Reads the proposals of other programs from the stored events. `own`: as in EarlierResults.
  absl::Status RestoreExternal(const std::vector<store::JobEvent>& events,
                               const std::map<int64_t, record::Record>& own);
  absl::Status Replay(const std::vector<store::JobEvent>& events, TaskSearchOptions options,
                      EarlierResults earlier);
  // Notes the best and the default schedule that the job confirmed before it was resumed.
  void KeepConfirmed();
  // Whether a job that continues still shows the best that it showed last, which is not confirmed,
  // until a candidate leads. It does not if its record was quarantined since, as when it was
  // forgotten. `own`: the job's stored records.
  bool KeepsShown(const std::map<int64_t, record::Record>& own) const;
  // Counts the job's stored records. Tells the search those that it was not told before.
  void CountAgain(const std::map<int64_t, record::Record>& own);
  int BatchSize() const;
  int NextBatch() const;  // the size of the next Propose
  // The candidates that were submitted or will be with the next batch.
  int64_t Proposed() const {
    return static_cast<int64_t>(trials_.size()) - 1 - static_cast<int64_t>(waiting_.size());
  }
  // The number of candidates that the job may propose besides those that were proposed.
  int64_t Room() const;
  bool IsOutOfAllowance() const;
  // Whether the job only measures what other programs propose.
  bool IsExternal() const { return job_.spec().strategy == kExternalStrategy; }
  // Whether another Propose would probably end after the time of the search.
  bool ProposingIsLate() const;
  // See JobSnapshot::unmeasured.
  int64_t Unmeasured() const;
  // Publishes that the allowance is used up, once.
  void Settle();
  void Propose();
  // Returns why a schedule of another program is refused, or a verdict without a trial.
  Verdict Judge(const std::string& proposer, const GivenCandidate& given) const;
  // Submits up to n of the waiting proposals of other programs.
  void SubmitWaiting(int n);
  std::vector<int64_t> TakeWaiting(int n);
  // Submits proposed trials, or drops them if the job is stopping.
  void Submit(const std::vector<int64_t>& trials);
  void Submit(int64_t trial);
  // Does without the result of a trial.
  void Drop(Trial& trial);
  void OnRecord(const record::Record& record, const std::string& worker_id);
  void CountTrial(const record::Record& record);
  // Counts a result that arrives after BeginClose.
  void CountLate(const record::Record& record);
  void OnError(int64_t trial, const absl::Status& status);
  void Tell(const record::Record& record, const std::string& worker_id);
  void Count(const record::Record& record, const std::string& worker_id);
  // Shows a result as the best of the job, unless the one that an earlier run of the job has
  // confirmed is faster, or the result is disturbed or of the same candidate.
  void Show(const record::Record& record);
  // Whether the search has a leader. It has none if nothing is confirmed, if there is only one
  // candidate, or in a child, because the scheduler of networks needs to know every improvement.
  bool HasLeader() const {
    return !job_.spec().unpublished && job_.spec().parent.empty() && !task_.IsDecided();
  }
  // Whether candidates work but none of them leads yet, and none is confirmed.
  bool LacksLeader() const;
  void ShowLeader();
  void MaybeTrain();
  void OnTrained(const absl::Status& threw,
                 absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> model);

  JobActor& job_;
  JobTask& task_;
  const std::function<void()> on_done_;
  std::unique_ptr<TaskSearch> search_;
  std::map<int64_t, Trial> trials_;  // including the default schedule
  WaitingProposals waiting_;         // of trials_
  ProposerNames names_;
  int outstanding_ = 0;            // trials submitted or about to be
  std::vector<int64_t> deferred_;  // outstanding trials to resubmit
  absl::Duration propose_took_;    // time of the longest Propose, which blocks the job
  absl::Time late_submission_ = absl::InfinitePast();
  absl::Time began_;   // when the first work was submitted
  absl::Time last_;    // when the last result arrived
  int results_ = 0;    // since began_
  int fruitless_ = 0;  // consecutive Proposes without a new candidate
  bool skips_default_ = false;
  bool first_model_pending_ = false;  // the first Propose waits for a model of earlier records
  bool exhausted_ = false;
  bool stopping_ = false;
  bool closing_ = false;
  ScreenedList screened_{&task_};
  std::optional<Screened> untiled_;
  std::optional<record::Record> fastest_;        // screened
  std::optional<record::Record> known_default_;  // see Found
  // From before the job was resumed, its own best if it had one.
  std::optional<Best> confirmed_;
  std::optional<Best> confirmed_default_;
  Challenges challenges_{job_, task_, screened_, [this] { ShowLeader(); }, [this] { Pump(); }};
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_TASK_SEARCH_H_
