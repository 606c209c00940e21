#ifndef HONE_TESTS_WORKER_BUILDER_MEASURED_TRACE_H_
#define HONE_TESTS_WORKER_BUILDER_MEASURED_TRACE_H_

#include <memory>
#include <string>

#include "common/record/record.h"
#include "tests/temporary_folder.h"
#include "worker/runner/runner.h"

namespace hone {

// Builds schedules on this machine, checks them against the reference of their workload, and times
// them, as a worker does. Its files are in a temporary folder, which the destructor removes.
class MeasuredTrace {
 public:
  // Sets the path of the lock and the deadline in `options`.
  explicit MeasuredTrace(runner::RunnerOptions options = {});

  // `text` is a trace file with a decision for every sampling. A build failure is reported as the
  // outcome of the result; the outcome is invalid if the text does not parse.
  record::MeasureResult Run(const std::string& text, double tolerance,
                            const record::Policy& policy = {});

  std::string lock_path() const { return folder_ / "lock"; }

 private:
  const TemporaryFolder folder_;
  std::unique_ptr<runner::Runner> runner_;
};

}  // namespace hone

#endif  // HONE_TESTS_WORKER_BUILDER_MEASURED_TRACE_H_
