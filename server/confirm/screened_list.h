#ifndef HONE_SERVER_CONFIRM_SCREENED_LIST_H_
#define HONE_SERVER_CONFIRM_SCREENED_LIST_H_

#include <utility>
#include <vector>

#include "common/record/record.h"
#include "server/confirm/finalist.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

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

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_SCREENED_LIST_H_
