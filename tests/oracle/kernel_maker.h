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
#include "server/space/design_space.h"
#include "tests/oracle/request.h"

namespace hone::oracle {

// One attempt to build a kernel.
struct Built {
  std::string origin;    // "default", "given", "random trace", or the name of a design space
  double tolerance = 0;  // that a job must allow before this design space is searched
  record::Outcome outcome = record::Outcome::kOk;
  std::string detail;         // why it was refused
  std::string shared_object;  // path; empty unless the outcome is ok
  std::string own_check;      // why Hone's runner would call its output wrong; empty: it is right
  std::string trace;          // a trace file that repeats the kernel
};

// What the maker reports while it works. Each call comes before or after something that may crash
// the process, so that the reader knows what was being done.
struct Listener {
  std::function<void(const std::string& step)> on_step;
  std::function<void(const ir::Workload&)> on_workload;
  std::function<void(const Built&)> on_built;
  // OK: Hone's own reference of the workload was built, run, and agreed with the interpreter.
  std::function<void(const absl::Status&)> on_reference;
};

// Answers one request: parses or builds the workload, makes its design spaces for a strict job and
// for one with a tolerance of 1e-3, and builds the default schedule, random candidates of both, and
// random traces. Everything that is drawn is a function of the request.
//
// InvalidArgument: the text is not a workload, operator or trace. Other errors are Hone's: a design
// space could not be made, or a file could not be written.
absl::Status MakeKernels(const Request& request, const Listener& listener);

}  // namespace hone::oracle

#endif  // HONE_TESTS_ORACLE_KERNEL_MAKER_H_
