#ifndef HONE_SERVER_JOB_SEARCH_NEAREST_H_
#define HONE_SERVER_JOB_SEARCH_NEAREST_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"

namespace hone::job {

// A schedule for a workload that was never tuned, adapted from the nearest tuned workload.
struct NearestBest {
  store::BestRow source;        // the best of the other workload
  double distance = 0;          // between the two workloads
  double flops = 0;             // of the source's workload
  record::Candidate candidate;  // adapted to the requested workload
  std::string space;            // the text of its design space
};

// Tries the bests with the workload's name, target and tolerance, nearest first: the published ones
// and, for workloads without one, the fastest confirmed records (imports bring such records). If
// the rules make a design space with the structure of the source's trace, the candidate belongs to
// that space and satisfies its constraints; otherwise it belongs to the source's own trace. It is
// replayed, but not built, checked or timed. Takes tens of milliseconds. NotFound: no known best
// has this name and form, or none could be adapted. InvalidArgument: the workload is malformed.
// Other errors are those of the store.
absl::StatusOr<NearestBest> FindNearest(store::Store& store, const TaskEnvironment& environment,
                                        const WorkloadInfo& workload, const std::string& target_key,
                                        const std::string& target_text, double tolerance);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_NEAREST_H_
