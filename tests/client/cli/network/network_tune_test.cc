#include "client/cli/network/network_tune.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

TEST(TooFewTrialsTest, SaysHowManyTasksGetNone) {
  GoldenOfTest golden;
  EXPECT_EQ(TooFewTrialsText(23, 23), "");
  EXPECT_EQ(TooFewTrialsText(0, 23), "") << "there is no limit";
  EXPECT_EQ(TooFewTrialsText(5, 0), "") << "all tasks are known";
  golden.Add(TooFewTrialsText(10, 23));
  golden.Add(TooFewTrialsText(1, 2));
}

TEST(TooLittleTimeTest, SaysThatTasksMayGetNoTrial) {
  EXPECT_EQ(TooLittleTimeText(0, 23), "") << "there is no limit";
  EXPECT_EQ(TooLittleTimeText(92'000, 23), "");
  EXPECT_EQ(TooLittleTimeText(1000, 0), "") << "all tasks are known";
  GoldenOfTest().Add(TooLittleTimeText(15'000, 23));
}

TEST(ContradictedTasksTest, AreThoseThatAreMuchFasterInTheNetwork) {
  // Task 0 in two steps, then task 1, an alias, task 2 and the copy of an output.
  NetworkArgument network;
  network.tasks.resize(3);
  network.partition.tasks = {{.weight = 2}, {.weight = 1}, {.weight = 1}};
  using Kind = graph::Step::Kind;
  network.partition.steps = {
      {.task = 0}, {.task = 1}, {.kind = Kind::kAlias}, {.task = 0}, {.task = 2}};
  const std::vector<StepSpeed> steps = {{.latency_ns = 900},
                                        {.latency_ns = 160e3},
                                        {.latency_ns = 400},
                                        {.latency_ns = 100},
                                        {.latency_ns = 1}};
  std::vector<std::optional<v1::Best>> bests(3);
  bests[0].emplace().set_latency_ns(790);
  bests[1].emplace().set_latency_ns(5.6e6);
  EXPECT_EQ(ContradictedTasks(network, steps, bests), std::vector<size_t>{1});
  bests[0]->set_latency_ns(810);
  EXPECT_EQ(ContradictedTasks(network, steps, bests), (std::vector<size_t>{1, 0}))
      << "the one that distorts the sum most comes first";
  bests[2].emplace().set_latency_ns(20);
  EXPECT_EQ(ContradictedTasks(network, steps, bests), (std::vector<size_t>{1, 0}))
      << "a network may be slower, because its tensors are not in the caches";
  EXPECT_TRUE(ContradictedTasks(network, {}, bests).empty()) << "the device times no steps";
}

}  // namespace
}  // namespace hone::cli
