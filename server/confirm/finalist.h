#ifndef HONE_SERVER_CONFIRM_FINALIST_H_
#define HONE_SERVER_CONFIRM_FINALIST_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/confirm/confirmation.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

// How a process measures a finalist, and a challenger of the leader. `repeats`: of the options.
inline record::Policy ConfirmPolicy(int repeats = ConfirmationOptions().repeats) {
  return {.name = "confirm", .repeats = repeats, .confidence = 0.95};
}

// A measured candidate that may become a finalist.
struct Screened {
  record::Record record;
  std::string worker_id;  // the worker that has the artifact; "": unknown
  // Steady. If the candidate was measured again, the median of all its processes.
  double latency_ns = 0;
  std::vector<record::Record> again;  // its processes as a challenger (leader.h), none disturbed
};

Screened ScreenedOf(record::Record record, std::string worker_id);

// Defines the order in which candidates become finalists: the only candidate of a decided space
// first, then by latency.
bool ComesBefore(const JobTask& task, const Screened& a, const Screened& b);

// A candidate to confirm.
struct Finalist {
  record::Candidate candidate;
  std::string space;
  int64_t trial = 0;              // of this job; record::kNoTrial: the search of another found it
  std::string proposer;           // Record::proposer, if the finalist is from the store
  bool is_untiled = false;        // Record::is_default
  double screened_ns = 0;         // steady; 0: unknown, because the finalist is from the store
  bool is_default = false;        // its program is the default schedule's
  bool is_own = false;            // this job's search found it
  bool is_slow_default = false;   // the default schedule, only for the speed-up
  std::string artifact_digest;    // "": it must be built again
  std::string worker_id;          // the worker that has the artifact
  fleet::BuilderVersion builder;  // of the artifact
  bool rebuilt = false;
  std::string stored_program;  // revalidation: digest of the measured program
  int noisy_rounds = 0;        // number of rounds measured again
  bool is_wrong = false;       // another worker got different results
  bool is_disturbed = false;   // a process that counts was disturbed
  bool is_quiet = false;       // a process that counts was not disturbed
  bool was_excused = false;    // a failure that the machine may have caused did not count, once
  record::Record last;         // of the last process that was measured as finalists are
  // The fastest of the disturbed processes (record::WithFasterHalf).
  std::optional<record::MeasureResult> disturbed;
  // Undisturbed processes that ran before the first round and may be published.
  std::vector<record::MeasureResult> earlier;
};

// Returns a record without a result for a measurement of the finalist.
record::Record MakeRecord(const JobTask& task, const Finalist& finalist);
// Names a finalist in messages: "trial 7".
std::string NameOf(const Finalist& finalist);

struct Finalists {
  std::vector<Finalist> list;
  int incumbent = -1;  // index of the published best; -1: nothing is published
  int untiled = -1;    // index of the default schedule; -1: it is not measured again
  std::optional<record::Record> incumbent_record;
  store::Pin pin;           // of the incumbent
  int64_t last_record = 0;  // of a revalidation: the last stored record when they were chosen

  // Returns the index of a candidate; the size of the list if it is not there.
  int IndexOf(const record::Candidate& candidate) const {
    return static_cast<int>(std::ranges::find(list, candidate, &Finalist::candidate) -
                            list.begin());
  }
  bool Has(int index) const { return index < static_cast<int>(list.size()); }
};

// Returns why nothing can be confirmed: the outcomes, or the state of the workers if there are
// none.
absl::Status NothingRan(const JobActor& job);

// What a search has found.
struct Found {
  std::vector<Screened> screened;   // the fastest, in no particular order
  std::optional<Screened> untiled;  // the default schedule, if it works
  // The best that the search shows: its leader (leader.h), or what an earlier run has confirmed.
  std::optional<record::Record> leader;
  // The default schedule as an earlier job has confirmed it (StoredDefault).
  std::optional<record::Record> known_default;
};

// Returns the finalists of a search: the leader, the fastest programs, the default schedule if
// there is time for it, and the published best. REQUIRES: `found.screened` is not empty.
Finalists ChooseFinalists(JobActor& job, const JobTask& task, Found found,
                          const ConfirmationOptions& options);

// Looks up the published best, and adds it to the list unless its candidate is already there. If
// none is published, adds the best of the confirmed records, so that no slower candidate is
// published while a faster one is known.
void FindIncumbent(JobActor& job, const JobTask& task, Finalists& finalists);

// Adds the fastest confirmed record of a task without a published best, unless there is none or its
// candidate is in the list. It is built again, since an import brings no artifact.
void AddUnpublishedBest(const JobActor& job, const JobTask& task, Finalists& finalists);

// Returns the best stored candidates, including the published one or else the best confirmed one,
// for a revalidation. FailedPrecondition: no working candidate is stored.
absl::StatusOr<Finalists> FindStoredFinalists(const JobActor& job, const JobTask& task);

// Returns why the stored records of a revalidated candidate are wrong; "" if they are not. `result`
// is the result of its first round.
std::string WhyStoredIsWrong(const Finalist& finalist, const record::MeasureResult& result);

// The measured candidates of a search that may become finalists: the fastest ones. Belongs to the
// job's strand.
class ScreenedList {
 public:
  // REQUIRES: `task` outlives this object.
  explicit ScreenedList(const JobTask* task) : task_(*task) {}

  // Adds a candidate. The slowest are dropped when there are many.
  void Add(Screened screened);
  // Adds undisturbed processes to a candidate that is in the list. Its latency becomes the median
  // of its screening and these processes. REQUIRES: at least one process; all are of one candidate.
  void AddProcesses(const std::vector<record::Record>& processes);
  // Returns the candidates, in no particular order, and empties the list.
  std::vector<Screened> Take() { return std::exchange(list_, {}); }

 private:
  const JobTask& task_;
  std::vector<Screened> list_;
};

// Finds the default schedule of a task as the last job that could do so has confirmed it. Used for
// speed-ups if the job at hand does not confirm it, for example because other work disturbs it.
class StoredDefault {
 public:
  // Adds a record of the task. Only undisturbed processes of default schedules count.
  void Add(const record::Record& record);
  // Returns the last record of that job, with the result of all its processes; nullopt if no job
  // has measured the default schedule in record::kProcesses undisturbed processes.
  std::optional<record::Record> Confirmed() const;

 private:
  std::optional<record::Record> published_;  // the last one that is the result of enough processes
  // Single processes by job and Policy::repeats. The processes that confirm a slow default take as
  // few samples as its screening, which then is one of them (see ConfirmPhase).
  std::map<std::pair<std::string, int>, std::vector<record::Record>> processes_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_FINALIST_H_
