#include <gtest/gtest.h>

#include <cmath>

#include "common/operator/operator.h"
#include "common/schedule/trace.h"
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

}  // namespace
}  // namespace hone::search
