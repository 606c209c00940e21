#include "tests/server/cost_model/recorded_task.h"

#include <algorithm>
#include <utility>

#include "common/base/rng.h"
#include "gtest/gtest.h"
#include "server/lab/set_folder.h"

namespace hone::cost_model {

RecordedTask::RecordedTask(const std::string& set, size_t programs)
    : bench_(*lab::Bench::Open(*lab::LoadRecordedSet("tests/bench/recorded", set))) {
  results_ = bench_->Results();
  std::erase_if(results_,
                [](const search::Measured& each) { return each.outcome != record::Outcome::kOk; });
  EXPECT_GE(results_.size(), programs);
  Rng rng(1);
  for (size_t i = results_.size(); i > 1; --i) std::swap(results_[i - 1], results_[rng.Below(i)]);
  results_.resize(programs);
  for (const search::Measured& each : results_)
    throughput_.push_back(bench_->best_latency_ns() / each.latency_ns);
}

FeatureMatrix RecordedTask::Features(absl::string_view feature_set, int begin, int end) const {
  FeatureMatrix matrix;
  for (int i = begin; i < end; ++i) {
    const absl::Status status =
        bench_->spaces().AppendFeatures(std::string(feature_set), results_[i].candidate, &matrix);
    EXPECT_TRUE(status.ok()) << status;
  }
  return matrix;
}

}  // namespace hone::cost_model
