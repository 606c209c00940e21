#ifndef HONE_SERVER_JOB_SEARCH_EARLIER_RESULTS_H_
#define HONE_SERVER_JOB_SEARCH_EARLIER_RESULTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/confirm/stored_default.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"
#include "server/job/search/transfer.h"
#include "server/tuner/search/search_strategy.h"

// What the store knows when the search of a job begins or continues.
namespace hone::job {

// The stored results of a task.
struct EarlierResults {
  std::vector<search::Measured> prior;    // of other jobs
  std::map<int64_t, record::Record> own;  // by trial
  std::vector<record::Record> again;      // repeated measurements of own candidates
  StoredDefault default_schedule;
  int64_t last_record = 0;  // of other jobs
};

search::Measured MeasuredOf(const record::Record& record);

// Reads the stored results of a task. Reads records of other jobs only up to `up_to_record` (-1:
// all of them), so that a continued search starts from the same records as before.
absl::StatusOr<EarlierResults> ReadEarlierResults(const JobActor& job, const JobTask& task,
                                                  int64_t up_to_record);

// Returns results of related workloads for the search; null if there are none or transfer is off.
absl::StatusOr<std::shared_ptr<const Transfer>> FindTransfer(const JobActor& job,
                                                             const JobTask& task,
                                                             int64_t up_to_record,
                                                             int64_t model_id);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_EARLIER_RESULTS_H_
