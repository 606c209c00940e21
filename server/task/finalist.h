#ifndef HONE_SERVER_TASK_FINALIST_H_
#define HONE_SERVER_TASK_FINALIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/task/job_task.h"

namespace hone::task {

// A measured candidate that may become a finalist.
struct Screened {
  record::Record record;
  std::string worker_id;  // that has the artifact; "": unknown
};

// The order in which candidates become finalists: the one candidate of a decided space, then by
// latency.
bool ComesBefore(const JobTask& task, const Screened& a, const Screened& b);

// A candidate that is confirmed.
struct Finalist {
  record::Candidate candidate;
  std::string space;
  int64_t trial = 0;
  bool is_default = false;      // its program is that of the default schedule
  std::string artifact_digest;  // "": it is built again
  std::string worker_id;        // that has the artifact
  bool rebuilt = false;
  std::string stored_program;  // in a revalidation, the digest of the program that was measured
  int noisy_rounds = 0;        // that were measured again
  record::Record last;         // of the last round
};

struct Finalists {
  std::vector<Finalist> list;
  int incumbent = -1;  // index of the published best; -1: nothing is published
  std::optional<record::Record> incumbent_record;
};

// The finalists of a search: the fastest programs, the default schedule if it is nearly as fast as
// the best, and the published best. REQUIRES `screened` is not empty.
Finalists ChooseFinalists(JobActor& job, const JobTask& task, std::vector<Screened> screened);

// Looks the published best up, and adds it to the list unless its candidate is in it.
void FindIncumbent(JobActor& job, const JobTask& task, Finalists& finalists);

struct StoredFinalists {
  Finalists finalists;
  int64_t last_record = 0;  // the last one that was stored when they were chosen
};

// The best stored candidates, the published one among them, for a revalidation.
// FailedPrecondition: nothing that worked is stored.
absl::StatusOr<StoredFinalists> FindStoredFinalists(const JobActor& job, const JobTask& task);

// Why the stored records of a revalidated candidate are wrong; "" if they are not. `result`: of its
// first round.
std::string WhyStoredIsWrong(const Finalist& finalist, const record::MeasureResult& result);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_FINALIST_H_
