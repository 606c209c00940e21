#ifndef HONE_SERVER_RESEARCH_LAB_LIVE_H_
#define HONE_SERVER_RESEARCH_LAB_LIVE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/research/lab/experiment.h"

namespace hone::lab {

struct LiveOptions {
  std::string program_folder;                    // contains `hone`
  std::string work_folder;                       // stores of the runs
  std::map<std::string, std::string> workloads;  // text form, by set name
  std::string target;                            // of `hone tune`; "": its default
};

// Runs the comparison on this machine with the real service: `hone tune` as child processes, one
// after the other. The outer loop is over seeds, so a slow phase of the machine affects all
// variants. Each run has an empty store and uses all design spaces of the experiment's maker. The
// best known latency is the best that any run screened. Seconds are wall time, and the report
// includes the latency that each job confirmed. Proposing and training overlap with measuring and
// are not reported separately. Runs that are already in the work folder are reused.
//
// InvalidArgument: as for CheckExperiment; also for a batch, a limited space or related results,
// which `hone tune` does not support. Aborted: `hone` failed, or no candidate ran.
absl::StatusOr<Results> RunLive(const Experiment& experiment, const LiveOptions& options);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_LIVE_H_
