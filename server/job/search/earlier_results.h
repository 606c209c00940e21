#ifndef HONE_SERVER_JOB_SEARCH_EARLIER_RESULTS_H_
#define HONE_SERVER_JOB_SEARCH_EARLIER_RESULTS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/confirm/finalist.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"
#include "server/tuner/search/search_strategy.h"

namespace hone::job {

// What the store knows when the search of a job begins or continues.

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

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_EARLIER_RESULTS_H_
