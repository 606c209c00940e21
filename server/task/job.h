#ifndef HONE_SERVER_TASK_JOB_H_
#define HONE_SERVER_TASK_JOB_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/store/store.h"
#include "server/task/confirmation.h"
#include "server/task/executor.h"
#include "server/task/job_types.h"
#include "server/task/preflight.h"
#include "server/task/task_environment.h"
#include "server/task/task_search.h"

namespace hone::task {

// What jobs work with. All outlive them.
struct JobServices {
  const Clock* clock = nullptr;         // the time of day, for what is written down
  const Clock* steady_clock = nullptr;  // that nobody sets, for deadlines; null: `clock`
  store::Store* store = nullptr;
  fleet::Fleet* fleet = nullptr;
  fleet::ArtifactCache* artifacts = nullptr;
  const TaskEnvironment* environment = nullptr;
  Executor* executor = nullptr;
  // Tries what a job does first before the job does it; null: jobs start unchecked.
  Preflight* preflight = nullptr;
  // This run of this server, as in claims; JobManager says it.
  std::string server;

  absl::Time SteadyNow() const { return (steady_clock != nullptr ? steady_clock : clock)->Now(); }
};

struct JobOptions {
  // Candidates per Propose: an eighth of the trial limit within these bounds.
  int min_batch = 4;
  int max_batch = 32;
  // More are proposed when fewer than this many times the batch are out, so that builders and the
  // runner never wait.
  double low_water = 1.0;
  // Jobs under way of one owner, and of all.
  int max_jobs_per_owner = 256;
  int max_jobs = 4096;
  ConfirmationOptions confirmation;
  // After the time limit or a cancel, what is being built or run may finish for so long.
  absl::Duration drain_limit = absl::Seconds(30);
  // How long the winner's artifact may take to arrive.
  absl::Duration artifact_limit = absl::Seconds(30);
  // Where server replicas share a store: how long a job of one that has died waits for another.
  // Claims are renewed several times as often. Clocks may differ by less than it.
  absl::Duration claim_lease = absl::Seconds(30);
  // How long another worker may take to check a new best.
  absl::Duration spot_check_limit = absl::Minutes(2);
  // How often a running job's summary is stored.
  absl::Duration save_interval = absl::Seconds(2);
  // Readers of a long job see its state so old at most: showing one copies it.
  absl::Duration show_interval = absl::Milliseconds(300);
  // Proposing and training hold the host's timing lock shared (common/base/host_lock.h), so that
  // they disturb no timing on this machine.
  bool respect_timing_lock = true;
};

// One job: an actor that tunes one workload on one target. It proposes candidates, keeps the fleet
// busy with them, commits each result before it is acknowledged, tells the search, trains the model
// in the background, and at the end confirms the finalists and publishes the best. Its state
// belongs to its strand; every public method may be called from any thread, returns at once, and
// takes effect by a message.
//
// A job survives the server: everything it needs to go on is in the store, and a Job made from a
// stored one replays its events first.
class Job : public std::enable_shared_from_this<Job> {
 public:
  // `snapshot`: of a new job only id, spec and created_unix_ms; of a stored one its last summary.
  Job(const JobServices& services, const JobOptions& options, JobSnapshot snapshot);

  // Begins, or goes on after a restart.
  void Start();
  // Whether the first risky step of Start is over, or the job has ended or was suspended.
  bool HasBegun() const { return begun_ || suspended_; }
  // Stops proposing. With confirm, what is under way finishes and the finalists are confirmed; else
  // everything stops now.
  void Cancel(bool confirm);
  // Time has passed. Called a few times a second.
  void Tick();
  // Ignores all further messages and leaves the stored state as it is, for the next server to go
  // on.
  void Suspend();
  // The same at the proper end of a server: in the stored state, a risky step that was under way is
  // no sign of a crash any more.
  void SuspendForShutdown();

  std::shared_ptr<const JobSnapshot> snapshot() const;
  // Ended, and its last state is in the store. One that could not be stored stays in memory for
  // readers.
  bool IsOver() const { return over_; }

 private:
  struct Trial {
    record::Candidate candidate;
    int64_t event = -1;  // in which it was proposed; -1 the default schedule
    bool told = false;
  };
  // A measured candidate that may become a finalist.
  struct Screened {
    record::Record record;
    std::string worker_id;  // that has the artifact; "" unknown
  };
  // What other workers say of a finalist before it is published.
  struct SpotCheck {
    bool over = false;                           // it may be published
    absl::Time deadline = absl::InfinitePast();  // of the opinion that is waited for
    std::vector<std::string> asked;              // workers
    std::string against;                         // the worker that disagreed, and …
    std::string why;                             // … how
  };
  struct Finalist {
    record::Candidate candidate;
    std::string space;
    int64_t trial = 0;
    bool is_default = false;      // its program is the default schedule's
    std::string artifact_digest;  // "": it is built again
    std::string worker_id;
    bool rebuilt = false;
    std::string stored_program;  // of a revalidation: digest of the program that was measured
    SpotCheck check;
    int noisy_rounds = 0;  // that were measured again
    record::Record last;   // of the last round
  };

  void Post(void (Job::*method)());
  template <typename Function>
  void PostCall(Function function);

  // Messages and their parts; all run on the strand.
  void Initialize();
  // The preflight's verdict.
  void OnChecked(const absl::Status& checked);
  // Opens the task and begins the search, in a risky step.
  void Begin();
  absl::Status OpenTask();
  absl::Status RestoreSearch();
  // What the task starts from; null: nothing is known, or nothing is wanted.
  absl::StatusOr<std::shared_ptr<const Transfer>> FindTransfer(int64_t up_to_record,
                                                               int64_t model_id) const;
  void Pump();
  void ProposeBatch();
  void Propose();
  void MaybeTrain();
  // What was proposed goes to the fleet, or is dropped by a job that stops.
  void SubmitTrials(const std::vector<int64_t>& trials);
  void SubmitTrial(int64_t trial);
  void OnTrialRecord(const record::Record& record, const std::string& worker_id);
  void TellRecord(const record::Record& record, const std::string& worker_id);
  void OnTrialError(int64_t trial, const absl::Status& status);
  // What the fleet had no room for is submitted again.
  void Resubmit();
  void CountRecord(const record::Record& record, const std::string& worker_id);
  void Screen(Screened screened);
  void OnTick();
  void OnCancel(bool confirm);
  void StartConfirming();
  // Of a revalidation, instead of a search: the best stored candidates are the finalists.
  void StartRevalidating();
  absl::Status FindStoredFinalists();
  // What the first round of a finalist says of its stored records.
  void Judge(const Finalist& finalist, const record::Record& record);
  // Among the finalists, by program: what a speed-up is over is measured as the best is.
  void AddDefault(const std::map<std::string, int>& programs);
  void AddIncumbent();
  // On which the finalists run: all on one, or the rounds would compare devices. The one that has
  // most of their artifacts.
  void ChooseDevice();
  void NextRound();
  // What the one candidate of a decided space came to in all rounds.
  void ReportOnly();
  // What the default schedule came to, where it was a finalist.
  void ReportDefault();
  void SubmitFinalist(int index);
  void OnRound(int index, const record::Record& record, const std::string& worker_id);
  void OnRoundError(int index, const absl::Status& status);
  void Publish();
  // Whether the finalist may be published: another worker of the target, when there is one, has run
  // the same bytes and found the same. Asks it first.
  bool IsSpotChecked(int index);
  void OnSpotCheck(int index, const record::Record& record, const std::string& worker_id);
  // Nobody is left to ask, and the finalist was found wrong.
  void Discard(int index, const std::string& liar, const std::string& why);
  // Whether the incumbent is much faster than its record says.
  bool HasOutgrown(int index) const;
  void PublishFinalist(int index);
  void OnPublished(const absl::StatusOr<record::Record>& record);
  void End(JobState state, absl::Status why = absl::OkStatus());

  // The common part of what is submitted, and of its record.
  fleet::WorkItem MakeItem(const record::Candidate& candidate, const std::string& space) const;
  record::Record MakeRecord(const record::Candidate& candidate, int64_t trial) const;
  // The claim under which everything of this job is written.
  store::JobFence Fence(int64_t event = -1) const { return {id_, state_.fence, event}; }
  // Commits the record of a result and acknowledges it; then `then` runs on the strand.
  template <typename Then>
  void Commit(record::Record record, int64_t event, fleet::WorkResult result,
              fleet::Acknowledge acknowledge, Then then);
  Best MakeBest(const record::Record& record) const;
  // Whether it is the one candidate of a decided space: it runs to its end, however slow, and is
  // always a finalist.
  bool IsOnly(const record::Candidate& candidate) const { return only_ == candidate; }
  std::string SpaceText(const std::string& digest) const;
  void SetPhase(const std::string& phase) { state_.phase = phase; }
  store::JobRow MakeRow(const JobSnapshot& state) const;
  void Save() {
    Save([](const absl::Status&) {});
  }
  // `done` runs in any thread, with what became of it; not at all once the job is suspended.
  void Save(absl::AnyInvocable<void(const absl::Status&) &&> done);
  // Risky steps (risky_step.h). `then` runs on the strand once the step is stored, unless the job
  // has ended meanwhile; nothing is proposed until then.
  template <typename Then>
  void EnterStep(const char* name, Then then);
  void StoreStep(const char* name, absl::AnyInvocable<void() &&> stored);
  void LeaveStep();
  // A message threw an exception: the job fails, with what it was doing.
  void OnException(const absl::Status& threw);
  // Stores the tells that are not stored yet: before a Propose, and now and then. Those that a
  // crash loses are told again, in the order of their trials.
  void LogTells();
  // Stores an event of the search.
  void Log(store::JobEvent event);
  // `then` runs on the strand once the event is durable.
  template <typename Then>
  void Log(store::JobEvent event, Then then);
  // What the job needs could not be stored. Where another server replica has claimed it meanwhile,
  // this one lets go of it and changes nothing more.
  void OnNotStored(const absl::Status& status);
  // Makes the state visible to readers.
  void ShowState();
  absl::Duration Wall() const;
  absl::Time Now() const { return services_.clock->Now(); }
  // Of deadlines and durations: setting the machine's clock neither ends nor delays anything.
  absl::Time Steady() const { return services_.SteadyNow(); }

  const JobServices services_;
  const JobOptions options_;
  const std::string id_;
  const JobSpec spec_;
  Strand strand_;
  std::atomic<bool> suspended_{false};  // set under save_mutex_
  std::atomic<bool> over_{false};
  std::atomic<bool> begun_{false};
  std::atomic<bool> tick_posted_{false};

  mutable absl::Mutex mutex_;
  std::shared_ptr<const JobSnapshot> shown_ ABSL_GUARDED_BY(mutex_);

  // Held while a state is handed to the store: none follows the one of SuspendForShutdown.
  absl::Mutex save_mutex_;
  // What is to be stored at a proper end; nothing where what is stored needs no change.
  std::optional<JobSnapshot> at_shutdown_ ABSL_GUARDED_BY(save_mutex_);

  // What follows belongs to the strand.
  const char* doing_ = "";     // for the message of an exception
  std::string crashed_while_;  // the risky step in which an earlier server ended
  // Nothing is proposed: the job has not begun yet, or a risky step is being stored.
  bool step_pending_ = true;
  JobSnapshot state_;
  absl::Time resumed_;           // when this server began to work on it
  absl::Duration earlier_wall_;  // under earlier servers
  absl::Time saved_ = absl::InfinitePast();
  absl::Time shown_at_ = absl::InfinitePast();
  WorkloadInfo workload_;
  std::shared_ptr<TaskSpaces> spaces_;
  std::map<std::string, std::string> space_texts_;
  std::optional<record::Candidate> only_;  // of a decided space
  std::unique_ptr<TaskSearch> search_;
  std::map<int64_t, Trial> trials_;       // 0 is the default schedule
  int outstanding_ = 0;                   // trials at the fleet, or on their way there
  std::vector<int64_t> deferred_trials_;  // outstanding, and the fleet had no room for them
  std::vector<int> deferred_finalists_;
  int fruitless_ = 0;                 // proposals in a row that were all dropped
  bool first_model_pending_ = false;  // earlier records are being learnt
  bool exhausted_ = false;
  bool stopping_ = false;
  bool cancelled_ = false;
  absl::Time drain_deadline_ = absl::InfiniteFuture();
  double peak_gflops_ = 0;
  double read_gbps_ = 0;
  std::vector<Screened> screened_;  // the best of the ok results
  std::shared_ptr<std::atomic<double>> best_latency_ = std::make_shared<std::atomic<double>>(0);

  std::vector<Finalist> finalists_;
  std::string device_;  // the worker that runs the finalists; "": whoever is the first
  std::optional<Confirmation> confirmation_;
  int incumbent_ = -1;
  std::optional<record::Record> incumbent_record_;  // as published
  int64_t last_stored_record_ = 0;                  // of a revalidation: when it began
  std::vector<int> ranking_;                        // who may be published, best first
  absl::Time artifact_deadline_ = absl::InfiniteFuture();
  bool publishing_ = false;
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JOB_H_
