#ifndef HONE_WORKER_AGENT_BUILDER_CLIENT_H_
#define HONE_WORKER_AGENT_BUILDER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/record/record.h"
#include "worker/agent/child_process.h"

namespace hone::agent {

struct BuilderOptions {
  std::vector<std::string> command;  // hone-builder and its arguments
  // Processor time of one build: an endless compile uses it up, a builder that waits for the timing
  // lock does not.
  absl::Duration cpu_limit = absl::Seconds(10);
  // And wall time, in case it waits for ever.
  absl::Duration wall_limit = absl::Minutes(3);
};

// One hone-builder process, started when it is needed and again after it has died. One thread uses
// it, from which the process is started (it ends with that thread).
class BuilderClient {
 public:
  explicit BuilderClient(BuilderOptions options) : options_(std::move(options)) {}

  // Never fails as such: a builder that dies gives compile_error with its last words (out_of_memory
  // when the kernel killed it), one that exceeds a limit is killed and gives compile_timeout, one
  // that cannot be started gives device_lost.
  record::BuildResponse Build(const record::BuildRequest& request);

  // Ends the process; the next Build starts one.
  void Stop() { child_.reset(); }

 private:
  record::BuildResponse Died();

  const BuilderOptions options_;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_BUILDER_CLIENT_H_
