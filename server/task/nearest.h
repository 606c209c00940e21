#ifndef HONE_SERVER_TASK_NEAREST_H_
#define HONE_SERVER_TASK_NEAREST_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/store/store.h"
#include "server/task/task_environment.h"

namespace hone::task {

// A schedule for a workload that nobody has tuned, taken from the nearest one that somebody has.
struct NearestBest {
  store::BestRow source;        // what was measured, of another workload
  double distance = 0;          // of the two workloads
  double flops = 0;             // of the source's workload
  record::Candidate candidate;  // adapted: it replays on the workload that was asked for
  std::string space;            // the text of its design space
};

// Looks for it among the published bests with the workload's name, target and tolerance, nearest
// first. The candidate is of a design space that the rules make for the workload, where one has the
// structure of the source's trace, so that their constraints hold; else of the source's own trace.
// It is only replayed: nothing is built, checked or timed. Some tens of milliseconds. NotFound: no
// best of that name and form is known, or none could be adapted. InvalidArgument: malformed.
// Errors of the store.
absl::StatusOr<NearestBest> FindNearest(store::Store& store, const TaskEnvironment& environment,
                                        const WorkloadInfo& workload, const std::string& target_key,
                                        const std::string& target_text, double tolerance);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_NEAREST_H_
