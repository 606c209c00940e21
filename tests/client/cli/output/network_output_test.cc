#include "client/cli/output/network_output.h"

#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"

namespace hone::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

client::NetworkProgress Network() {
  client::NetworkProgress network{.name = "net", .task_count = 3, .latency_ns = 4000};
  network.tasks = {{.workload = "small",
                    .weights = {2},
                    .job = "7.0",
                    .state = "confirming",
                    .trials = 16,
                    .latency_ns = 500,
                    .default_latency_ns = 1000},
                   {.workload = "large", .weights = {1, 2}, .latency_ns = 1000, .confirmed = true},
                   {.workload = "unknown", .weights = {1}, .job = "7.2", .error = "broken"}};
  network.estimates = {{1000, 8, 5000}};
  return network;
}

TEST(NetworkOutputTest, TheHeaviestTaskComesFirst) {
  EXPECT_EQ(
      TaskTable(Network(), /*ended=*/false).ToText(),
      "task  job  times  trials    latency  of all  GFLOP/s  speed-up  state       workload\n"
      "   1  -        3       0   1.000 us  75.0 %        -         -  known       large\n"
      "   0  7.0      2      16  ~500.0 ns  25.0 %        -     2.00x  confirming  small\n"
      "   2  7.2      1       0          -   0.0 %        -         -  failed      unknown\n");
}

TEST(NetworkOutputTest, ADisturbedTaskIsNotConfirmed) {
  client::NetworkProgress network = Network();
  for (client::NetworkTaskProgress& task : network.tasks) task.confirmed = true;
  EXPECT_EQ(SumText(network), "4.000 us");
  EXPECT_EQ(ToJson(network)["confirmed"], true);
  network.tasks[0].disturbed = true;
  EXPECT_EQ(SumText(network), "~4.000 us");
  EXPECT_THAT(TaskTable(network, /*ended=*/true).ToText(), HasSubstr("2.00x  disturbed"));
  const Json json = ToJson(network);
  EXPECT_EQ(json["confirmed"], false);
  EXPECT_EQ(json["tasks"][0]["confirmed"], false);
  EXPECT_EQ(json["tasks"][0]["disturbed"], true);
  EXPECT_EQ(json["tasks"][1]["confirmed"], true);
  EXPECT_TRUE(AllConfirmed(network)) << "all have a kernel";
}

TEST(NetworkOutputTest, AListedNetworkHasNoTasksButIsConfirmedOrNot) {
  client::NetworkProgress network{.name = "listed", .task_count = 2, .latency_ns = 4000};
  EXPECT_TRUE(ToJson(network)["confirmed"].is_null()) << "it has not begun";
  EXPECT_EQ(SumText(network), "~4.000 us");
  network.confirmed = false;
  EXPECT_EQ(ToJson(network)["confirmed"], false);
  EXPECT_EQ(SumText(network), "~4.000 us");
  network.confirmed = true;
  EXPECT_EQ(ToJson(network)["confirmed"], true);
  EXPECT_EQ(SumText(network), "4.000 us");
}

TEST(NetworkOutputTest, ErrorsAreExplainedBelowTheTable) {
  client::NetworkProgress network = Network();
  EXPECT_THAT(TaskErrors(network), ElementsAre("task 2 failed: broken"));
  network.tasks[0].error = "broken";
  network.tasks[1].error = "slow";
  EXPECT_THAT(TaskErrors(network), ElementsAre("tasks 0, 2 failed: broken", "task 1 failed: slow"));
}

TEST(NetworkOutputTest, ANoteDoesNotRepeatTheErrorOfATask) {
  client::Job job{.note = "1 of 3 tasks have no confirmed kernel; task 2, conv2d: broken"};
  EXPECT_EQ(NoteBesideErrors(job), job.note);
  job.network = Network();
  EXPECT_EQ(NoteBesideErrors(job), "1 of 3 tasks have no confirmed kernel");
  job.note = "every task already has a known best";
  EXPECT_EQ(NoteBesideErrors(job), job.note);
}

TEST(NetworkOutputTest, ATaskWithoutAJobWaitsOnlyUntilTheEnd) {
  client::NetworkProgress network{.name = "net", .task_count = 1};
  network.tasks = {{.workload = "small", .weights = {1}}};
  EXPECT_THAT(TaskTable(network, /*ended=*/false).ToText(), HasSubstr("waiting"));
  EXPECT_THAT(TaskTable(network, /*ended=*/true).ToText(), HasSubstr("not started"));
}

TEST(NetworkOutputTest, ATaskOfAnEndedNetworkIsNotCalledCancelled) {
  client::NetworkProgress network = Network();
  network.tasks[0].state = "cancelled";
  EXPECT_THAT(TaskTable(network, /*ended=*/true).ToText(), HasSubstr("2.00x  not confirmed"));
}

TEST(NetworkOutputTest, AJobOfNetworksIsDescribed) {
  client::Job job;
  job.workload = "first line\nsecond line";
  EXPECT_EQ(DescribeJob(job), "first line");
  job.network = Network();
  EXPECT_EQ(DescribeJob(job), "network net, 3 tasks");
  job.network->name.clear();
  job.network->task_count = 1;
  EXPECT_EQ(DescribeJob(job), "network, 1 task");
}

TEST(NetworkOutputTest, AJobThatIsNotASearchIsRecognisable) {
  client::Job job;
  job.workload = "first line";
  EXPECT_EQ(DescribeJobAndKind(job), "first line");
  job.spec.space = SpaceOfOneSchedule();
  EXPECT_EQ(DescribeJobAndKind(job), "check of first line");
  job.spec.space.clear();
  job.spec.revalidate = 3;
  EXPECT_EQ(DescribeJobAndKind(job), "revalidation of first line");
  job.spec.revalidate = 0;
  job.spec.unpublished = true;
  EXPECT_EQ(DescribeJobAndKind(job), "run of first line");
}

TEST(NetworkOutputTest, BestsOfFewerProcessesAreLessCertain) {
  client::Best best;
  best.record.result.processes = 3;
  std::vector<std::optional<client::Best>> bests = {best, std::nullopt};
  EXPECT_EQ(LessCertainText(bests), "");
  best.record.result.processes = 2;
  bests.push_back(best);
  EXPECT_EQ(LessCertainText(bests),
            "the best of 1 task was measured in fewer than three processes, so that its latency is "
            "less certain");
  bests.push_back(best);
  EXPECT_EQ(LessCertainText(bests),
            "the bests of 2 tasks were measured in fewer than three processes, so that their "
            "latencies are less certain");
}

TEST(NetworkOutputTest, JsonHasTheTasksInTheirOrder) {
  const Json json = ToJson(Network());
  EXPECT_EQ(json["latency_ns"], 4000);
  EXPECT_TRUE(json["default_latency_ns"].is_null());
  ASSERT_EQ(json["tasks"].size(), 3u);
  EXPECT_EQ(json["tasks"][0]["workload"], "small");
  EXPECT_EQ(json["tasks"][1]["weight"], 3);
  EXPECT_TRUE(json["tasks"][2]["latency_ns"].is_null());
  EXPECT_EQ(json["estimates"][0]["wall_s"], 1);
}

}  // namespace
}  // namespace hone::cli
