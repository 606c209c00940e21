#ifndef HONE_SERVER_JOB_CHILD_PREFLIGHT_H_
#define HONE_SERVER_JOB_CHILD_PREFLIGHT_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/digest.h"
#include "server/job/actor/executor.h"
#include "server/job/actor/preflight.h"

namespace hone::job {

struct ChildPreflightOptions {
  // The program that does the work, and its arguments. It reads the job's spec (EncodeSpec) from
  // standard input and limits its own memory and processor time. It writes a line "step NAME" to
  // standard output before each step, and a line "error TEXT" if an exception ended a step. Its
  // exit status is 0 if the work ended normally.
  std::vector<std::string> command;
  // Wall time that a child may take, even on a busy machine.
  absl::Duration limit = absl::Minutes(5);
  // If a child got less than this share of the limit as processor time, it says nothing about its
  // job, which then starts unchecked.
  double least_share = 0.1;
  // Maximum number of concurrent children.
  int threads = 2;
};

// Runs the first work of each job in a separate process. Jobs that differ only in fields that do
// not affect that work, such as the owner or the number of trials, are checked once.
class ChildPreflight final : public Preflight {
 public:
  explicit ChildPreflight(ChildPreflightOptions options)
      : options_(std::move(options)), threads_(options_.threads) {}

  // Passes OK to `done` if the child cannot be started, because this is not the job's fault. The
  // error is logged.
  void Check(const JobSpec& spec, Done done) override;
  void Stop() override;

 private:
  // `limit`: the job's time limit; 0: it has none.
  absl::Status CheckNow(const JobSpec& spec, absl::Duration limit);
  // Starts a child and adds it to children_. `input` and `output` become its standard streams.
  absl::StatusOr<pid_t> Start(int input, int output);
  // Waits for a child to end and returns the verdict.
  absl::Status Follow(pid_t pid, int output, absl::Duration limit);

  const ChildPreflightOptions options_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<pid_t> children_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Digest> passed_ ABSL_GUARDED_BY(mutex_);
  ThreadPool threads_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_CHILD_PREFLIGHT_H_
