#ifndef HONE_WORKER_AGENT_BUILDER_CLIENT_H_
#define HONE_WORKER_AGENT_BUILDER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/record/record.h"
#include "worker/agent/bounded_dir.h"
#include "worker/agent/child_folder.h"
#include "worker/agent/child_process.h"

namespace hone::agent {

struct BuilderOptions {
  std::vector<std::string> command;  // hone-builder and its arguments
  std::string output_parent;         // each process gets a folder of its own in this one
  // Processor time of one build. An endless compile uses it up; a builder that waits for the timing
  // lock does not.
  absl::Duration cpu_limit = absl::Seconds(10);
  // Wall time of one build, in case it waits forever.
  absl::Duration wall_limit = absl::Minutes(3);
};

// One hone-builder process, started on demand and again after it has died. Used by one thread,
// which starts the process; the process ends with that thread.
class BuilderClient {
 public:
  explicit BuilderClient(BuilderOptions options) : options_(std::move(options)) {}

  // Builds in the folder of the process, and puts the artifact into `artifacts`; the request's
  // artifact_dir is not used. Reports every failure as an outcome. If the builder dies, the outcome
  // is compile_error with the end of its standard error, or out_of_memory if the kernel killed it.
  // The same outcome follows if its folder holds anything but the artifact, which is the work of
  // the candidate. If it exceeds a limit, it is killed: compile_timeout, or device_lost if it
  // hardly computed. If it cannot be started: device_lost. A builder that died while it was idle is
  // replaced.
  record::BuildResponse Build(const record::BuildRequest& request, BoundedDir& artifacts);

 private:
  // Starts the process and makes its folder.
  absl::Status StartChild();
  // Sends the request and waits for the answer.
  record::BuildResponse Ask(const record::BuildRequest& request);
  record::BuildResponse Died();
  absl::Status TakeArtifact(const std::string& digest, BoundedDir& artifacts);

  const BuilderOptions options_;
  std::unique_ptr<OutputFolder> folder_;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_BUILDER_CLIENT_H_
