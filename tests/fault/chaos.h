#ifndef HONE_TESTS_FAULT_CHAOS_H_
#define HONE_TESTS_FAULT_CHAOS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/fault/cluster.h"
#include "tests/fault/customer.h"
#include "tests/fault/fault_schedule.h"
#include "tests/fault/interventions.h"
#include "tests/fault/invariants.h"
#include "tests/fault/ledger.h"
#include "tests/fault/observer.h"

namespace hone::fault {

struct ChaosOptions {
  ScheduleOptions schedule;
  absl::Duration last_wish;                   // customers start nothing new after this
  absl::Duration settle = absl::Seconds(45);  // time for everything to end after the last fault
  int trials = 12;                            // per job
  bool talk = false;                          // print actions to standard error
};

struct ChaosReport {
  ChaosOptions options;
  // How many faults of a kind had a victim, and how many had none.
  struct Count {
    int struck = 0;
    int missed = 0;
  };
  std::map<FaultKind, Count> faults;
  std::vector<Verdict> verdicts;
  absl::Duration took;
  absl::Duration settled;  // from the last fault to the end of the last job
  int64_t troubled_calls = 0;
  int64_t lost_to_restores = 0;  // promises made after the restored backup
  int starts = 0;                // of all programs
  int jobs_done = 0;
  int commands_interrupted = 0;
  std::string skipped;  // why some faults had no victim; "" if all could strike
  int struck() const;
  int kinds_struck() const;  // the number of kinds that had a victim
  bool holds() const;        // whether every verdict holds
};

// Runs a fleet below `folder`, injects the faults of the schedule, and checks the invariants.
// Errors: the fleet could not be started.
absl::StatusOr<ChaosReport> RunChaos(const ChaosOptions& options, const std::string& folder);

// Injects faults into a fleet. Used by one thread.
class Chaos {
 public:
  static absl::StatusOr<std::unique_ptr<Chaos>> Start(const ChaosOptions& options,
                                                      const std::string& folder);
  // Runs the schedule, waits for the end of all jobs, ends the programs and checks the invariants.
  ChaosReport Run();

 private:
  struct Backup {
    std::string path;
    Ledger::Promises promises;
  };
  struct Failure {
    absl::Time noticed;
    std::string reason;
    bool is_counted = false;  // the test has resumed the job
  };
  explicit Chaos(const ChaosOptions& options) : options_(options) {}

  // Periodic work: restarts programs, steps the customers, ends faults, makes backups.
  void Step();
  void Sleep(absl::Duration duration);
  void Settle();
  void Judge();
  // Checks what is stored. Errors: the store cannot be opened or read.
  absl::Status JudgeStore(const std::map<std::string, v1::Best>& served);
  // Has the current fault last until `end` is called.
  void EndLater(absl::Duration after, std::function<void()> end);
  void MakeBackup();
  // Acts as an administrator: unflags workers, and at the end resumes jobs that failed. Each of
  // these interventions must be explained by a fault.
  void Administrate();
  Failure& NoteFailure(const v1::Job& job);
  void NoteResumption(const v1::Job& job);
  void Intervene(Intervention intervention);
  bool AllJobsEnded();

  // Injects a fault (fault_actions.cc). Returns whether there was a victim.
  bool Strike(const Fault& fault);
  bool KillLeader(const Fault& fault);
  bool StopLeader(const Fault& fault);
  bool KillStandby(const Fault& fault);
  bool KillWorker(const Fault& fault);
  bool StopWorker(const Fault& fault);
  bool KillClient(const Fault& fault);
  bool SignalChild(const Fault& fault);  // builders and runners, killed or stopped
  bool SpoilNetwork(const Fault& fault);
  bool SpoilMessages(const Fault& fault);
  bool FillDisk(const Fault& fault);
  bool JumpClock(const Fault& fault);
  bool RestoreBackup(const Fault& fault);
  bool KillDatabase(const Fault& fault);
  bool DemoteDatabase(const Fault& fault);
  bool Partition(const Fault& fault);
  bool SlowQueries(const Fault& fault);
  // Kills a program, which is part of the fault until it is started again.
  void KillAndRestart(Member& member, absl::Duration pause);
  void Stop(Member& member, absl::Duration lasts);

  const ChaosOptions options_;
  ChaosReport report_;
  Ledger ledger_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<client::Connection> direct_;
  std::unique_ptr<Observer> observer_;
  std::vector<std::unique_ptr<Customer>> customers_;
  std::vector<Backup> backups_;
  std::vector<std::string> broken_backups_;
  absl::Time began_;
  absl::Time next_backup_;
  absl::Time next_administration_;
  bool settling_ = false;
  std::multimap<absl::Time, std::function<void()>> ends_;
  std::vector<StruckFault> struck_;  // the current fault is the last one
  std::vector<Intervention> interventions_;
  std::map<std::string, Failure> failures_;  // of the jobs that have ended without a result, by id
  std::vector<std::unique_ptr<integration::Process>> lock_holders_;  // of tables of the database
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_CHAOS_H_
