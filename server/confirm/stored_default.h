#ifndef HONE_SERVER_CONFIRM_STORED_DEFAULT_H_
#define HONE_SERVER_CONFIRM_STORED_DEFAULT_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/record/record.h"

namespace hone::job {

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

#endif  // HONE_SERVER_CONFIRM_STORED_DEFAULT_H_
