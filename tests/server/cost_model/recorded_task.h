#ifndef HONE_TESTS_SERVER_COST_MODEL_RECORDED_TASK_H_
#define HONE_TESTS_SERVER_COST_MODEL_RECORDED_TASK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/cost_model/cost_model.h"
#include "server/lab/run.h"

namespace hone::cost_model {

// Measured programs of a recorded set (tests/bench/recorded), in random order.
class RecordedTask {
 public:
  // The first `programs` of them. REQUIRES a set of that name with as many that did not fail.
  RecordedTask(const std::string& set, size_t programs);

  // Best latency over each one's latency.
  const std::vector<double>& throughput() const { return throughput_; }
  // The rows of the programs from `begin` to before `end`. REQUIRES a registered feature set.
  FeatureMatrix Features(absl::string_view feature_set, int begin, int end) const;

 private:
  std::unique_ptr<const lab::Bench> bench_;
  std::vector<search::Measured> results_;
  std::vector<double> throughput_;
};

}  // namespace hone::cost_model

#endif  // HONE_TESTS_SERVER_COST_MODEL_RECORDED_TASK_H_
