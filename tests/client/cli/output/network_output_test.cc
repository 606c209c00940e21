#include "client/cli/output/network_output.h"

#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/measured.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

using ::testing::ElementsAre;

v1::NetworkProgress Network() {
  v1::NetworkProgress network;
  network.set_name("net");
  network.set_task_count(3);
  network.set_latency_ns(4000);
  v1::NetworkTaskProgress& small = *network.add_tasks();
  small.set_workload("small");
  small.add_weights(2);
  small.set_job("7.0");
  small.set_state(v1::JOB_STATE_CONFIRMING);
  small.set_trials(16);
  small.set_latency_ns(500);
  small.set_default_latency_ns(1000);
  v1::NetworkTaskProgress& large = *network.add_tasks();
  large.set_workload("large");
  large.add_weights(1);
  large.add_weights(2);
  large.set_latency_ns(1000);
  large.set_confirmed(true);
  v1::NetworkTaskProgress& unknown = *network.add_tasks();
  unknown.set_workload("unknown");
  unknown.add_weights(1);
  unknown.set_job("7.2");
  unknown.set_error("broken");
  network.set_confirmed(false);
  v1::NetworkEstimate& estimate = *network.add_estimates();
  estimate.set_wall_ms(1000);
  estimate.set_trials(8);
  estimate.set_latency_ns(5000);
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
  v1::NetworkProgress network = Network();
  for (v1::NetworkTaskProgress& task : *network.mutable_tasks()) task.set_confirmed(true);
  network.set_confirmed(true);
  EXPECT_EQ(SumText(network), "4.000 us");
  EXPECT_EQ(ToJson(network)["confirmed"], true);
  network.mutable_tasks(0)->set_disturbed(true);
  network.set_confirmed(false);
  EXPECT_EQ(SumText(network), "~4.000 us");
  GoldenOfTest().Add(TaskTable(network, /*ended=*/true).ToText());
  const Json json = ToJson(network);
  EXPECT_EQ(json["confirmed"], false);
  EXPECT_EQ(json["tasks"][0]["confirmed"], false);
  EXPECT_EQ(json["tasks"][0]["disturbed"], true);
  EXPECT_EQ(json["tasks"][1]["confirmed"], true);
  EXPECT_TRUE(AllConfirmed(network)) << "all have a kernel";
}

TEST(NetworkOutputTest, AListedNetworkHasNoTasksButIsConfirmedOrNot) {
  v1::NetworkProgress network;
  network.set_name("listed");
  network.set_task_count(2);
  network.set_latency_ns(4000);
  EXPECT_TRUE(ToJson(network)["confirmed"].is_null()) << "it has not begun";
  EXPECT_EQ(SumText(network), "~4.000 us");
  network.set_confirmed(false);
  EXPECT_EQ(ToJson(network)["confirmed"], false);
  EXPECT_EQ(SumText(network), "~4.000 us");
  network.set_confirmed(true);
  EXPECT_EQ(ToJson(network)["confirmed"], true);
  EXPECT_EQ(SumText(network), "4.000 us");
}

TEST(NetworkOutputTest, ErrorsAreExplainedBelowTheTable) {
  v1::NetworkProgress network = Network();
  EXPECT_THAT(TaskErrors(network), ElementsAre("task 2 failed: broken"));
  network.mutable_tasks(0)->set_error("broken");
  network.mutable_tasks(1)->set_error("slow");
  EXPECT_THAT(TaskErrors(network), ElementsAre("tasks 0, 2 failed: broken", "task 1 failed: slow"));
}

TEST(NetworkOutputTest, ANetworkThatWasCutHasNotFailed) {
  v1::Job job;
  EXPECT_TRUE(CheckTasks(job, "hone tune").ok()) << "not of a network";
  *job.mutable_network() = Network();
  v1::NetworkTaskProgress& task = *job.mutable_network()->mutable_tasks(2);
  job.mutable_request()->set_max_trials(8);
  EXPECT_TRUE(absl::IsAborted(CheckTasks(job, "hone tune"))) << "it failed";
  job.mutable_request()->set_max_time_ms(1000);
  EXPECT_TRUE(CheckTasks(job, "hone tune").ok()) << "there was no time for it";
  task.set_trials(4);
  EXPECT_EQ(CheckTasks(job, "hone tune").message(),
            "2 of 3 tasks have no confirmed kernel; hone tune tunes them");
  task.clear_error();
  EXPECT_TRUE(CheckTasks(job, "hone tune").ok()) << "its measurements were disturbed";
}

TEST(NetworkOutputTest, ANoteDoesNotRepeatTheErrorOfATask) {
  v1::Job job;
  job.set_note("1 of 3 tasks have no confirmed kernel; task 2, conv2d: broken");
  EXPECT_EQ(NoteBesideErrors(job), job.note());
  *job.mutable_network() = Network();
  EXPECT_EQ(NoteBesideErrors(job), "1 of 3 tasks have no confirmed kernel");
  job.set_note("every task already has a known best");
  EXPECT_EQ(NoteBesideErrors(job), job.note());
}

TEST(NetworkOutputTest, ATaskWithoutAJobWaitsOnlyUntilTheEnd) {
  GoldenOfTest golden;
  v1::NetworkProgress network;
  network.set_name("net");
  network.set_task_count(1);
  network.add_tasks()->set_workload("small");
  network.mutable_tasks(0)->add_weights(1);
  golden.Add(TaskTable(network, /*ended=*/false).ToText());
  golden.Add(TaskTable(network, /*ended=*/true).ToText());
}

TEST(NetworkOutputTest, ATaskOfAnEndedNetworkIsNotCalledCancelled) {
  v1::NetworkProgress network = Network();
  network.mutable_tasks(0)->set_state(v1::JOB_STATE_CANCELLED);
  GoldenOfTest().Add(TaskTable(network, /*ended=*/true).ToText());
}

TEST(NetworkOutputTest, AJobOfNetworksIsDescribed) {
  v1::Job job;
  job.set_workload("first line\nsecond line");
  EXPECT_EQ(DescribeJob(job), "first line");
  *job.mutable_network() = Network();
  EXPECT_EQ(DescribeJob(job), "network net, 3 tasks");
  job.mutable_network()->clear_name();
  job.mutable_network()->set_task_count(1);
  EXPECT_EQ(DescribeJob(job), "network, 1 task");
}

TEST(NetworkOutputTest, AJobThatIsNotASearchIsRecognisable) {
  v1::Job job;
  job.set_workload("first line");
  EXPECT_EQ(DescribeJobAndKind(job), "first line");
  job.set_is_check(true);
  EXPECT_EQ(DescribeJobAndKind(job), "check of first line");
  job.set_is_check(false);
  job.mutable_request()->set_revalidate(3);
  EXPECT_EQ(DescribeJobAndKind(job), "revalidation of first line");
  job.mutable_request()->set_revalidate(0);
  job.mutable_request()->set_unpublished(true);
  EXPECT_EQ(DescribeJobAndKind(job), "run of first line");
}

TEST(NetworkOutputTest, BestsOfFewerProcessesAreLessCertain) {
  v1::Best best;
  best.set_processes(3);
  std::vector<std::optional<v1::Best>> bests = {best, std::nullopt};
  EXPECT_EQ(LessCertainText(bests), "");
  best.set_processes(2);
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
