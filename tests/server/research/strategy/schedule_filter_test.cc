#include <gtest/gtest.h>

#include <cmath>

#include "common/operator/operator.h"
#include "common/schedule/trace.h"
#include "server/research/strategy/schedule_model.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/cost_model/metric.h"
#include "server/tuner/search/history.h"
#include "server/tuner/space/design_space.h"
#include "tests/status.h"

namespace hone::search {
namespace {

std::unique_ptr<space::DesignSpace> TiledMatmul() {
  return space::DesignSpace::Create(
             "tiled",
             std::make_shared<const ir::Workload>(
                 op::BuildWorkload("matmul", {"m=256", "n=256", "k=256"}).value()),
             schedule::ParseTrace(R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=0)
x2, x3 = sample_perfect_tile(l1, parts=2, max_inner=0)
l3, l4 = split(l0, x0, x1)
l5, l6 = split(l1, x2, x3)
)")
                 ->trace)
      .value();
}

// Latencies grow with the distance of both inner tiles from 16.
double LatencyOf(const Point& point) {
  return 100 + 20 * (std::abs(std::log2(point.decisions[1]) - 4) +
                     std::abs(std::log2(point.decisions[3]) - 4));
}

TEST(ScheduleFilterTest, LearnsFromResultsToOrderSchedules) {
  const std::unique_ptr<space::DesignSpace> space = TiledMatmul();
  const SearchContext context{.spaces = {space.get()},
                              .target = target::TargetByName("x86-avx2").value()};
  const std::unique_ptr<PointFilter> filter = MakeScheduleFilter(context, "tlp-fast");
  History history(&context);
  Rng rng(1);
  std::vector<Point> unseen;
  std::vector<double> throughput;
  for (int i = 0; i < 150; ++i) {
    const Point point{0, space->Sample(rng).value()};
    if (history.Knows(point)) continue;
    if (history.Told() < 40) {
      HONE_ASSERT_OK_AND_ASSIGN(const bool judges, filter->Learn(history));
      EXPECT_EQ(judges, history.Told() >= 32);
      history.Tell({{CandidateOf(context, point), record::Outcome::kOk, LatencyOf(point)}});
    } else {
      unseen.push_back(point);
      throughput.push_back(100 / LatencyOf(point));
    }
  }
  ASSERT_GE(unseen.size(), 6u);
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<double> scores, filter->Score(unseen));
  EXPECT_GT(cost_model::PairwiseAccuracy(scores, throughput, 0.01), 0.7);
}

// The value of a partial schedule is that of its best completion: a first inner tile of 16 promises
// more than one of 256 while the second is open, and more than any bad completion of it.
TEST(ScheduleModelTest, ValuesPartialSchedules) {
  const std::unique_ptr<space::DesignSpace> space = TiledMatmul();
  const SearchContext context{.spaces = {space.get()},
                              .target = target::TargetByName("x86-avx2").value()};
  ScheduleModel model(context, "state-value");
  History history(&context);
  Rng rng(2);
  for (int i = 0; i < 300 && history.Told() < 60; ++i) {
    const Point point{0, space->Sample(rng).value()};
    if (!history.Knows(point))
      history.Tell({{CandidateOf(context, point), record::Outcome::kOk, LatencyOf(point)}});
  }
  HONE_ASSERT_OK_AND_ASSIGN(const bool learned, model.Learn(history));
  ASSERT_TRUE(learned);
  const std::vector<std::vector<int64_t>> decisions = {
      {16, 16}, {1, 256}, {16, 16, 16, 16}, {16, 16, 256, 1}};
  std::vector<PartialPoint> states;
  for (const std::vector<int64_t>& some : decisions) states.push_back({0, some});
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<double> values, model.Score(states));
  EXPECT_GT(values[0], values[1] + 0.05);
  EXPECT_GT(values[2], values[3] + 0.05);
  EXPECT_GT(values[0], values[3] + 0.05);
}

// Latencies that the draft does not know: what the search proposes after it has learned the value
// is faster than what it proposed before.
TEST(BeamSearchTest, SearchesWithTheStateValue) {
  const std::unique_ptr<space::DesignSpace> space = TiledMatmul();
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto strategy,
      CreateSearchStrategy("beam-state-value", {.spaces = {space.get()},
                                                .target = target::TargetByName("x86-avx2").value(),
                                                .seed = 3,
                                                .population = 128}));
  std::vector<double> means;
  for (uint64_t event = 0; event < 5; ++event) {
    HONE_ASSERT_OK_AND_ASSIGN(const std::vector<record::Candidate> proposed,
                              strategy->Propose(8, event, nullptr));
    ASSERT_EQ(proposed.size(), 8u);
    std::vector<Measured> results;
    double sum = 0;
    for (const record::Candidate& candidate : proposed) {
      results.push_back(
          {candidate, record::Outcome::kOk, LatencyOf(Point{0, candidate.decisions})});
      sum += results.back().latency_ns;
    }
    means.push_back(sum / 8);
    strategy->Tell(results);
  }
  const double before = (means[0] + means[1] + means[2] + means[3]) / 4;  // 32 results
  EXPECT_LT(means[4], 0.9 * before);
}

}  // namespace
}  // namespace hone::search
