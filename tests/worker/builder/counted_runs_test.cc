// When a runner counts what a kernel does, and how it scales the counts.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/record/counters.h"
#include "gtest/gtest.h"
#include "tests/worker/builder/measured_trace.h"

namespace hone {
namespace {

constexpr char kDoubled[] =
    "workload doubled\ninput X: f32[64]\noutput Y[i: 64] = X[i] + X[i]\ntrace 1\n";

// Counts 3 million instructions, however many runs there are.
class FakeCounters final : public runner::CounterSource {
 public:
  absl::Duration least_time() const override { return absl::Milliseconds(1); }
  void Begin() override { ++begun; }
  std::vector<record::Counter> End() override {
    ++ended;
    return {{record::kInstructions, 3e6, ""}, {record::kCycles, 0, "a reason"}};
  }
  int begun = 0, ended = 0;
};

TEST(CountedRunsTest, FinalistsAreCountedAndTrialsAreNot) {
  FakeCounters source;
  runner::RunnerOptions options;
  options.counters = &source;
  MeasuredTrace trace(std::move(options));
  const record::MeasureResult screened = trace.Run(kDoubled, 0, {.name = "screen"});
  ASSERT_EQ(screened.outcome, record::Outcome::kOk) << screened.detail;
  EXPECT_EQ(screened.counters, "");
  const record::MeasureResult flushed =
      trace.Run(kDoubled, 0, {.name = "confirm", .cache = "flushed"});
  ASSERT_EQ(flushed.outcome, record::Outcome::kOk) << flushed.detail;
  EXPECT_EQ(flushed.counters, "") << "emptying the caches would be counted, too";
  EXPECT_EQ(source.begun, 0);

  const record::MeasureResult confirmed = trace.Run(kDoubled, 0, {.name = "confirm"});
  ASSERT_EQ(confirmed.outcome, record::Outcome::kOk) << confirmed.detail;
  EXPECT_EQ(source.begun, 1);
  EXPECT_EQ(source.ended, 1);
  const std::vector<record::Counter> counters = record::ParseCounters(confirmed.counters);
  ASSERT_EQ(counters.size(), 3u) << confirmed.counters;
  EXPECT_EQ(counters[0].name, record::kWallNs);
  EXPECT_GT(counters[0].value, 0);
  EXPECT_EQ(counters[1].name, record::kInstructions);
  // The counts are of one run. The runs take a millisecond together, as long as they were timed.
  const double runs = 3e6 / counters[1].value;
  EXPECT_NEAR(runs, std::ceil(1e6 / confirmed.latency_ns), 0.01 * runs);
  EXPECT_EQ(counters[2].missing, "a reason");
}

}  // namespace
}  // namespace hone
