#ifndef HONE_TESTS_ORACLE_KERNEL_MAKER_H_
#define HONE_TESTS_ORACLE_KERNEL_MAKER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/rng.h"
#include "common/ir/workload.h"
#include "common/record/record.h"
#include "common/target/target.h"
#include "server/tuner/space/design_space.h"
#include "tests/oracle/request.h"

namespace hone::oracle {

// One attempt to build a kernel.
struct Built {
  std::string origin;    // "default", "given", "random trace", or the name of a design space
  double tolerance = 0;  // the job tolerance from which the space is searched
  record::Outcome outcome = record::Outcome::kOk;
  std::string detail;         // why it was rejected
  std::string shared_object;  // path; empty unless the outcome is ok
  std::string own_check;      // the error of Hone's own check; empty if it passes
  std::string trace;          // a trace file that reproduces the kernel
};

// Callbacks for progress. Each call comes before or after a step that may crash the process, so
// that the reader knows which step it was.
struct Listener {
  std::function<void(const std::string& step)> on_step;
  std::function<void(const ir::Workload&)> on_workload;
  std::function<void(const Built&)> on_built;
  // OK if Hone's own reference of the workload was built and run and agrees with the interpreter.
  std::function<void(const absl::Status&)> on_reference;
};

// Answers one request: parses or builds the workload, makes its design spaces for a strict job and
// for a job with tolerance 1e-3, and builds the default schedule, random candidates of both, and
// random traces. All random choices follow from the request.
//
// InvalidArgument: the text is not a workload, operator or trace. Other errors are faults of Hone:
// a design space could not be made, or a file could not be written.
absl::Status MakeKernels(const Request& request, const Listener& listener);

}  // namespace hone::oracle

#endif  // HONE_TESTS_ORACLE_KERNEL_MAKER_H_
