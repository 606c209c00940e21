#ifndef HONE_TESTS_WORKER_BUILDER_MEASURED_TRACE_H_
#define HONE_TESTS_WORKER_BUILDER_MEASURED_TRACE_H_

#include <memory>
#include <string>

#include "common/record/record.h"
#include "worker/runner/runner.h"

namespace hone {

// Schedules through the builder and the runner on this machine: built, checked against the
// reference of their workload, timed. Files lie in a temporary folder that ends with the object.
class MeasuredTrace {
 public:
  MeasuredTrace();
  ~MeasuredTrace();

  // `text`: of a trace file, decided where it samples. Invalid: it does not parse. A failed build
  // is the result's outcome.
  record::MeasureResult Run(const std::string& text, double tolerance);

 private:
  std::string folder_;
  std::unique_ptr<runner::Runner> runner_;
};

}  // namespace hone

#endif  // HONE_TESTS_WORKER_BUILDER_MEASURED_TRACE_H_
