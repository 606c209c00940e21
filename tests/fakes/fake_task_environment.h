#ifndef HONE_TESTS_FAKES_FAKE_TASK_ENVIRONMENT_H_
#define HONE_TESTS_FAKES_FAKE_TASK_ENVIRONMENT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/job/actor/task_environment.h"

namespace hone::job {

// A task environment for workloads of the form "fake NAME SIZE". Each has a searched space with
// three decisions of SIZE values each, and a space without decisions for the default schedule. A
// given space such as "1,2,3" has only this candidate. Candidates of other workloads are adapted by
// limiting their decisions to SIZE - 1. A program proposes "1,2,3" of the searched space, or
// "foreign 1,2,3" of a space that the task does not have.
//
// The strategy "picky" draws a pool and takes the candidates with the best predictions, each at
// most once. The model "nearest" predicts the throughput of the nearest measured candidate, and 0
// for all candidates before it is trained. Both are deterministic. Thread-safe.
class FakeTaskEnvironment final : public TaskEnvironment {
 public:
  // Makes later strategies draw from another random stream, as after a change of the program.
  void ChangeStrategies() { stream_ = 1; }
  // Calls `at` during the steps "open", "propose", "read" and "train" of every job, with the name
  // of the workload. `at` may throw.
  using AtStep = std::function<void(absl::string_view step, absl::string_view name)>;
  void WatchSteps(AtStep at) { *at_step_ = std::move(at); }

  // Returned by Describe for every workload.
  double fixed_flops = 0;
  std::string workload_digest;  // "": that of the text
  bool has_fma_peak = true;

  absl::StatusOr<WorkloadInfo> Describe(const std::string& workload) const override;
  absl::StatusOr<bool> CheckSpace(const std::string& workload,
                                  const std::string& space) const override;
  absl::StatusOr<std::unique_ptr<TaskSpaces>> Open(
      const std::string& workload, const std::string& target, const std::string& space,
      double tolerance, StopCheck check = nullptr,
      std::shared_ptr<const cost_model::CostModel> draft = nullptr) const override;
  absl::StatusOr<std::unique_ptr<TaskSpaces>> OpenKept(const std::string& space,
                                                       const std::string& target) const override;
  // Returns |log2| of the ratio of the sizes if the names have the same first letter, otherwise
  // infinity.
  double Distance(const std::string& a, const std::string& b) const override;
  absl::StatusOr<std::string> Transplant(const std::string& workload,
                                         const std::string& space) const override;
  absl::StatusOr<std::string> TraceText(const std::string& space,
                                        const std::vector<int64_t>& decisions) const override;
  // Returns one row: the lengths of the trace and the target.
  absl::StatusOr<FeatureTable> DescribeFeatures(const std::string& trace, const std::string& target,
                                                const std::string& feature_set) const override;
  absl::StatusOr<std::unique_ptr<cost_model::CostModel>> CreateModel(
      const std::string& name, const cost_model::CostModelOptions& options) const override;
  std::string default_strategy() const override { return "picky"; }
  std::string default_cost_model() const override { return "nearest"; }
  std::vector<std::string> StrategyNames() const override { return {"picky"}; }
  std::vector<std::string> CostModelNames() const override { return {"nearest"}; }
  std::vector<std::string> FeatureSetNames() const override { return {"decisions"}; }
  std::vector<cost_model::CostModelInfo> CostModels() const override {
    return {{.name = "nearest", .feature_set = "decisions"},
            {.name = "oracle", .missing = "it needs a temple"}};
  }

 private:
  uint64_t stream_ = 0;
  const std::shared_ptr<AtStep> at_step_ = std::make_shared<AtStep>();
};

// Returns the latency that the fake device measures: the lowest for decisions (1, 2, 3), and 1000
// ns for the default schedule.
double FakeLatency(const std::vector<int64_t>& decisions);

}  // namespace hone::job

#endif  // HONE_TESTS_FAKES_FAKE_TASK_ENVIRONMENT_H_
