#ifndef HONE_SERVER_CONFIRM_LEADER_H_
#define HONE_SERVER_CONFIRM_LEADER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "common/record/record.h"
#include "server/confirm/finalist.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

// The fastest candidate of a running search, with a latency that can be relied on.
//
// The lowest of many screened latencies is too low, because it belongs to the measurement that was
// disturbed least or misjudged most. A candidate that looks faster than the leader is therefore a
// challenger: it is measured again in separate processes, as finalists are. It takes the lead once
// record::kProcesses processes in a row were faster than the leader; the slowest of them is its
// latency. The leader's latency thus never rises, and the confirmation at the end of the job seldom
// finds a higher one. A process that other work disturbed does not count.
//
// Pure logic: no time, no I/O. Not thread-safe.
class Leader {
 public:
  // Adds a screened candidate that works. `trials`: the number of trials of the job so far, which
  // limits the number of processes for challengers.
  void Add(Screened screened, int64_t trials);
  // Returns the next challenger, which must be measured; null if there is none, or if the current
  // one is undecided.
  const Screened* NextChallenger();
  // Whether a challenger is being measured. It must be measured again until this is false.
  bool IsBusy() const { return challenger_.has_value(); }
  const Screened& challenger() const { return challenger_->screened; }
  // Reports a process of the challenger. Returns whether it has taken the lead.
  bool Report(const record::Record& record);
  // Drops the challenger, because it cannot be measured.
  void Withdraw() { challenger_.reset(); }

  // The leader's last record, with the combined result of its processes; nullopt if there is none.
  const std::optional<record::Record>& best() const { return leader_; }
  // If a candidate of an earlier server is faster, makes it the leader. `rounds`: its records.
  void Restore(const std::vector<record::Record>& rounds);

 private:
  struct Challenge {
    Screened screened;
    std::vector<record::Record> rounds;
    int disturbed = 0;  // number of disturbed processes, which do not count
  };

  double LatencyNs() const;  // of the leader; infinite if there is none
  void Lead(const std::vector<record::Record>& rounds);

  std::vector<Screened> waiting_;  // possible challengers, the slowest first
  std::optional<Challenge> challenger_;
  std::optional<record::Record> leader_;
  int64_t allowed_ = 0;  // number of processes for challengers
  int64_t used_ = 0;
};

// Measures the challengers of a search's leader (leader.h), one at a time, beside its trials.
// Belongs to the job's strand.
class Challenges {
 public:
  // `screened` gets the undisturbed processes. `on_leader` is called when a challenger has taken
  // the lead, and `on_done` when a challenger is decided. REQUIRES: the arguments outlive this
  // object.
  Challenges(JobActor& job, JobTask& task, ScreenedList& screened, std::function<void()> on_leader,
             std::function<void()> on_done)
      : job_(job),
        task_(task),
        screened_(screened),
        on_leader_(std::move(on_leader)),
        on_done_(std::move(on_done)) {}

  // Adds a screened candidate that works, see Leader::Add.
  void Add(Screened screened, int64_t trials) { leader_.Add(std::move(screened), trials); }
  // Begins to measure the next challenger, unless there is none or one is being measured.
  void Continue();
  // Begins no more measurements.
  void Stop() { stopping_ = true; }
  // See Leader::best.
  const std::optional<record::Record>& leader() const { return leader_.best(); }
  // Restores the leader from candidates that an earlier server measured again.
  void Restore(const std::vector<record::Record>& again);

 private:
  // Measures the current challenger in one more process.
  void Measure();
  void OnMeasured(const record::Record& record);
  void Withdraw();

  JobActor& job_;
  JobTask& task_;
  ScreenedList& screened_;
  const std::function<void()> on_leader_;
  const std::function<void()> on_done_;
  Leader leader_;
  bool stopping_ = false;
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_LEADER_H_
