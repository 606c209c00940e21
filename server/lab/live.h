#ifndef HONE_SERVER_LAB_LIVE_H_
#define HONE_SERVER_LAB_LIVE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/lab/experiment.h"

namespace hone::lab {

struct LiveOptions {
  std::string program_folder;                    // where `hone` is
  std::string work_folder;                       // for the stores of the runs
  std::map<std::string, std::string> workloads;  // text form, by the name of the set
};

// Runs the comparison on this machine, with the real service: `hone tune` as child processes, one
// after the other, seed by seed so that the variants share the machine's moods, each with an empty
// store, over all design spaces of the rules. The best known is the best that any of the runs
// screened; seconds are those that passed, and the latency that each job confirmed is told too.
// Proposing and training overlap with measuring and are not told apart. A run that is in the work
// folder already is read and not repeated.
//
// InvalidArgument: as of CheckExperiment; a batch, a limited space or results of
// another set, which `hone tune` does not have. Aborted: `hone` failed, or no candidate ran.
absl::StatusOr<Results> RunLive(const Experiment& experiment, const LiveOptions& options);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_LIVE_H_
