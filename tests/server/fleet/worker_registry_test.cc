#include "server/fleet/worker_registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class WorkerRegistryTest : public ::testing::Test {
 protected:
  Worker& Add(const std::string& id, const std::string& target_key, double peak_gflops = 0) {
    Worker& worker = registry_.Add(id);
    worker.connected = true;
    registry_.SetCapabilities(worker, {.target = target_key + " text",
                                       .target_key = target_key,
                                       .can_run = true,
                                       .peak_gflops = peak_gflops});
    return worker;
  }

  // Returns "" if the call is accepted.
  std::string WhyTurnedAway(const WorkerReport& report, Presence presence = Presence::kRecent) {
    const auto away = registry_.WhyTurnedAway(report, /*most=*/1, presence, absl::UnixEpoch());
    return away.has_value() ? away->why : "";
  }

  Standings standings_;
  WorkerRegistry registry_{&standings_};
};

TEST_F(WorkerRegistryTest, FindsWorkersByTheirTarget) {
  Add("a", "t");
  Add("b", "t", 7);
  Add("d", "t", 6);
  Worker& moved = Add("c", "u");
  EXPECT_THAT(registry_.Targets(), ElementsAre("t", "u"));
  EXPECT_THAT(registry_.OfTarget("t"), SizeIs(3));
  EXPECT_EQ(registry_.DeviceOf("t")->peak_gflops, 7) << "the largest one";
  EXPECT_FALSE(registry_.DeviceOf("v").has_value());
  registry_.SetCapabilities(moved, {.target_key = "v", .can_run = true});
  EXPECT_THAT(registry_.OfTarget("u"), IsEmpty());
  registry_.Erase("c");
  EXPECT_THAT(registry_.Targets(), ElementsAre("t"));
}

TEST_F(WorkerRegistryTest, ADrainedWorkerIsNotARunner) {
  Add("a", "t");
  EXPECT_TRUE(registry_.HasRunner("t"));
  standings_.Change({.worker_id = "a", .drained = true});
  EXPECT_FALSE(registry_.HasRunner("t"));
}

TEST_F(WorkerRegistryTest, RefusedWorkersAreNamedIfThereIsNoOther) {
  EXPECT_THAT(registry_.ChooseTarget("").status().message(), Not(HasSubstr("resume")));
  standings_.Change({.worker_id = "a", .refused = "removed", .removed = true});
  EXPECT_THAT(registry_.ChooseTarget("").status().message(),
              HasSubstr("one that is refused (a): an administrator gives it work again with"));
  const std::string advice =
      "; no target is registered; start hone-worker on such a machine, or admit one that is "
      "refused (a): an administrator gives it work again with \"hone workers resume a\"";
  EXPECT_THAT(registry_.ChooseTarget("t").status().message(), HasSubstr(advice));
}

TEST_F(WorkerRegistryTest, TheTargetOfAConnectedWorkerIsPreferred) {
  EXPECT_THAT(registry_.ChooseTarget(""), StatusIs(absl::StatusCode::kUnavailable));
  Worker& worker = Add("a", "t");
  EXPECT_EQ(registry_.ChooseTarget("")->text, "t text");
  worker.connected = false;
  EXPECT_EQ(registry_.ChooseTarget("")->key, "t") << "the job can say what it waits for";
  worker.connected = true;
  Add("b", "u");
  EXPECT_THAT(registry_.ChooseTarget(""), StatusIs(absl::StatusCode::kFailedPrecondition));
  worker.connected = false;
  EXPECT_EQ(registry_.ChooseTarget("")->key, "u");
  EXPECT_EQ(registry_.ChooseTarget("t")->key, "t") << "its worker may come back";
}

TEST_F(WorkerRegistryTest, ANameStaysWithItsOwnerWhileItIsAway) {
  WorkerReport report{.worker_id = "a", .epoch = "1", .identity = "board-*"};
  report.capabilities.host = "first";
  Worker& worker = registry_.Add("a");
  registry_.Update(worker, report, absl::UnixEpoch());
  report = {.worker_id = "a", .epoch = "2", .identity = "board-*"};
  report.capabilities.host = "second";
  EXPECT_THAT(WhyTurnedAway(report), HasSubstr("belongs to 'board-* on first'"));
  worker.connected = false;
  EXPECT_EQ(WhyTurnedAway(report), "") << "its host may have a new name";
  report.identity = "desk";
  EXPECT_THAT(WhyTurnedAway(report), HasSubstr("belongs to 'board-*'"));
  worker.identity.clear();
  EXPECT_EQ(WhyTurnedAway(report), "") << "a worker without credentials does not own its name";
}

TEST_F(WorkerRegistryTest, ARemovedWorkerIsRefusedUnderEveryName) {
  standings_.Change(
      {.worker_id = "a", .identity = "board-* on h", .refused = "go", .removed = true});
  WorkerReport report{.worker_id = "b", .epoch = "1", .identity = "board-*"};
  report.capabilities.host = "h";
  EXPECT_THAT(WhyTurnedAway(report), HasSubstr("it is the worker a: go"));
  report.capabilities.host = "another";
  EXPECT_EQ(WhyTurnedAway(report), "") << "another board with the same token";
  report.identity.clear();
  report.capabilities.host = "h";
  EXPECT_EQ(WhyTurnedAway(report), "") << "only its name is known";
}

TEST_F(WorkerRegistryTest, NameBelongsToCredentialsAndEarliestLiveProcess) {
  WorkerReport report{.worker_id = "a", .epoch = "1", .identity = "ann"};
  EXPECT_EQ(WhyTurnedAway(report), "");
  Worker& worker = registry_.Add("a");
  EXPECT_TRUE(registry_.Update(worker, report, absl::UnixEpoch())) << "the process is new";
  EXPECT_FALSE(registry_.Update(worker, report, absl::UnixEpoch()));
  EXPECT_THAT(WhyTurnedAway({.worker_id = "b"}), HasSubstr("1 worker is registered"));
  report.identity = "bob";
  EXPECT_THAT(WhyTurnedAway(report), HasSubstr("belongs to 'ann'"));
  report = {.worker_id = "a", .epoch = "2", .identity = "ann"};
  EXPECT_EQ(WhyTurnedAway(report), "") << "usually, the worker was restarted";
  registry_.Update(worker, report, absl::UnixEpoch());
  report.epoch = "1";
  EXPECT_THAT(WhyTurnedAway(report), HasSubstr("another process")) << "a delayed message?";
  EXPECT_EQ(WhyTurnedAway(report), "") << "it was not restarted";
  registry_.Update(worker, report, absl::UnixEpoch());
  EXPECT_THAT(worker.rival, HasSubstr("uses the name a and gets no work"));
  report.epoch = "2";
  for (int i = 0; i < 3; ++i) EXPECT_THAT(WhyTurnedAway(report), HasSubstr("another process"));
  EXPECT_EQ(WhyTurnedAway(report, Presence::kGone), "") << "the earlier process is gone";
  report.epoch = "3";
  EXPECT_THAT(WhyTurnedAway(report, Presence::kCalling), HasSubstr("another process"));
  EXPECT_THAT(WhyTurnedAway(report), HasSubstr("another process")) << "it is known by now";
  worker.connected = false;
  EXPECT_EQ(WhyTurnedAway(report), "");
  standings_.Change({.worker_id = "a", .refused = "go", .removed = true});
  EXPECT_EQ(WhyTurnedAway(report), "go");
}

TEST(CommitCountTest, AwaitsOnlyCommitsAlreadyStarted) {
  CommitCount commits;
  commits.begun = 1;
  commits.Await();
  EXPECT_TRUE(commits.IsAwaited());
  ++commits.begun;
  commits.Await();  // no effect while already waiting
  commits.End();
  EXPECT_FALSE(commits.IsAwaited());
}

}  // namespace
}  // namespace hone::fleet
