#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "server/job/network/network_job.h"
#include "tests/status.h"

namespace hone::job {
namespace {

JobSpec SpecOf(int tasks, int64_t trials) {
  JobSpec spec{.max_trials = trials};
  spec.network.emplace().tasks.resize(tasks);
  return spec;
}

TEST(NetworkStateTest, ABatchIsAnEighthOfATasksShare) {
  const JobOptions options{.min_batch = 4, .max_batch = 32};
  EXPECT_EQ(TrialsAtATime(SpecOf(20, 2000), options), 12);
  EXPECT_EQ(TrialsAtATime(SpecOf(1, 2000), options), 32);
  EXPECT_EQ(TrialsAtATime(SpecOf(20, 200), options), 4);
  EXPECT_EQ(TrialsAtATime(SpecOf(20, 40), options), 2) << "every task gets a first batch";
  EXPECT_EQ(TrialsAtATime(SpecOf(20, 10), options), 1);
  EXPECT_EQ(TrialsAtATime(SpecOf(20, 0), options), 8);
}

TEST(NetworkStateTest, PatienceLooksBackByTrials) {
  NetworkState state;
  EXPECT_FALSE(HasLostPatience(state, 10));
  state.estimates = {{0, 10, 100}, {0, 20, 90}, {0, 30, 89.95}};
  EXPECT_FALSE(HasLostPatience(state, 0));
  EXPECT_TRUE(HasLostPatience(state, 10)) << "90 to 89.95 is less than 0.1 %";
  EXPECT_FALSE(HasLostPatience(state, 20));
  EXPECT_FALSE(HasLostPatience(state, 30)) << "too early to tell";
}

TEST(NetworkStateTest, EstimatesAreThinnedOut) {
  NetworkState state;
  for (int i = 1; i <= 5000; ++i) AddEstimate({i, i, 1e6 / i}, 8, state);
  EXPECT_LE(state.estimates.size(), kMostEstimates);
  EXPECT_GT(state.estimates.size(), kMostEstimates / 4);
  EXPECT_EQ(state.estimates.back().trials, 5000);
  EXPECT_LE(state.estimates.front().trials, 10);
  for (size_t i = 1; i < state.estimates.size(); ++i) {
    EXPECT_GT(state.estimates[i].trials, state.estimates[i - 1].trials);
  }
}

TEST(NetworkStateTest, RequestsAndStatesRoundTrip) {
  JobSpec spec = SpecOf(0, 100);
  *spec.network = {.name = "net",
                   .tasks = {{"workload a", {1, 2.5}}, {"workload b", {0, 1}}},
                   .network_names = {"x", "y"},
                   .objective = "speedup",
                   .limits_ns = {1, 2},
                   .references_ns = {3, 4},
                   .network_weights = {3, 1},
                   .scheduler = "gradient",
                   .patience = 64,
                   .early_stop = 32,
                   .only_missing = true};
  spec.parent = "4711";
  HONE_ASSERT_OK_AND_ASSIGN(const JobSpec read, DecodeSpec(EncodeSpec(spec)));
  EXPECT_EQ(read, spec);

  JobSnapshot snapshot{.id = "7"};
  snapshot.allowance = 24;
  snapshot.network.emplace();
  snapshot.network->tasks = {{.workload_digest = "d", .op = "conv2d", .curve = {{8, 3.5}, {16, 2}}},
                             {.closed = true}};
  snapshot.network->estimates = {{1, 2, 3}};
  HONE_ASSERT_OK_AND_ASSIGN(const JobSnapshot state, DecodeSnapshot(EncodeSnapshot(snapshot)));
  EXPECT_EQ(EncodeSnapshot(state), EncodeSnapshot(snapshot));
  EXPECT_EQ(state.allowance, 24);
  EXPECT_EQ(state.network->tasks[0].curve, snapshot.network->tasks[0].curve);
  EXPECT_TRUE(state.network->tasks[1].closed);
  EXPECT_EQ(state.network->estimates, snapshot.network->estimates);
}

}  // namespace
}  // namespace hone::job
