#ifndef HONE_SERVER_CONFIRM_CHALLENGES_H_
#define HONE_SERVER_CONFIRM_CHALLENGES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "common/record/record.h"
#include "server/confirm/leader.h"
#include "server/confirm/screened_list.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

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

#endif  // HONE_SERVER_CONFIRM_CHALLENGES_H_
