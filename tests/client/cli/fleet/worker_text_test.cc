#include "client/cli/fleet/worker_text.h"

#include "client/cli/output/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

TEST(WorkerTextTest, OnlyWhatAnAdministratorDrainedIsDrained) {
  v1::WorkerInfo worker;
  worker.set_id("builder-1");
  worker.set_connected(true);
  EXPECT_EQ(WorkerState(worker), "connected");
  worker.set_stopping(true);
  EXPECT_EQ(WorkerState(worker), "stopped") << "a server of an earlier version waits for it";
  worker.set_connected(false);
  EXPECT_EQ(WorkerState(worker), "stopped");
  worker.set_draining(true);
  EXPECT_EQ(WorkerState(worker), "drained, disconnected");
}

TEST(WorkerTextTest, AWorkerIsDrainingWhileItFinishesItsLeases) {
  v1::WorkerInfo worker;
  worker.set_id("w");
  worker.set_connected(true);
  worker.set_leases(2);
  worker.set_draining(true);
  EXPECT_EQ(WorkerState(worker), "draining");
  worker.set_leases(0);
  EXPECT_EQ(WorkerState(worker), "drained");
}

v1::WorkerInfo Runner(const std::string& id, const std::string& target = "x86-t") {
  v1::WorkerInfo worker;
  worker.set_id(id);
  worker.set_host("desk");
  worker.set_target(target);
  worker.set_connected(true);
  worker.set_can_run(true);
  return worker;
}

TEST(WhyJobsWaitTest, NamesEachWorkerThatCouldTakeTheWork) {
  v1::WorkerInfo builder = Runner("builder");
  builder.set_can_build(true);
  v1::WorkerInfo board = Runner("pi-07", "arm-t");
  EXPECT_EQ(WhyJobsWait({builder, board}), "");
  board.set_connected(false);
  board.set_last_seen_unix_ms(1'700'000'000'000);
  EXPECT_EQ(WhyJobsWait({builder, board}), "jobs for arm-t wait: pi-07 was last seen on " +
                                               FormatTime(board.last_seen_unix_ms()) +
                                               "; start hone-worker on its machine (desk) again");
  EXPECT_EQ(WhyJobsWait({builder, board, Runner("pi-08", "arm-t")}), "") << "another one runs it";
  builder.set_draining(true);
  EXPECT_EQ(WhyJobsWait({builder}),
            "jobs for x86-t wait: builder is drained; an administrator gives it work again with "
            "hone workers resume builder");
  GoldenOfTest().Add(WithoutTimes(WhyJobsWait({builder, board})));
  EXPECT_EQ(
      WhyJobsWait({builder, Runner("other")}),
      "no worker builds kernels, so jobs wait: builder is drained; an administrator gives it work "
      "again with hone workers resume builder");
}

TEST(WhyJobsWaitTest, ARemovedWorkerHasItsAdviceOnce) {
  v1::WorkerInfo removed;
  removed.set_id("w");
  removed.set_flagged("an administrator removed it; \"hone workers resume w\" admits it again");
  EXPECT_EQ(
      WhyJobsWait({removed}),
      "jobs wait: w is refused: an administrator removed it; \"hone workers resume w\" admits "
      "it again");
}

TEST(WaitWithoutTest, WarnsOfJobsThatNoOtherWorkerDoes) {
  GoldenOfTest golden;
  v1::WorkerInfo drained = Runner("w");
  drained.set_can_build(true);
  drained.set_draining(true);
  v1::Job job;
  job.set_id("12");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_target("x86-t");
  EXPECT_EQ(WaitWithout("w", {drained}, {job}),
            "no other worker runs target x86-t, so job 12 waits, and fails if that takes too long; "
            "an administrator gives it work again with hone workers resume w");
  v1::Job second = job;
  second.set_id("13");
  golden.Add(WaitWithout("w", {drained}, {job, second}));
  v1::WorkerInfo other = Runner("other");
  golden.Add(WaitWithout("w", {drained, other}, {job}));
  other.set_can_build(true);
  EXPECT_EQ(WaitWithout("w", {drained, other}, {job}), "");
  job.set_target("arm-t");
  EXPECT_EQ(WaitWithout("w", {drained}, {job}), "") << "it has another target";
  job.set_target("x86-t");
  job.set_state(v1::JOB_STATE_DONE);
  EXPECT_EQ(WaitWithout("w", {drained}, {job}), "");
}

TEST(WorkerTextTest, ResumingAWorkerThatIsNotConnectedDoesNotGiveItWork) {
  v1::WorkerInfo worker;
  worker.set_id("builder-1");
  worker.set_connected(true);
  EXPECT_EQ(ResumedText(worker), "builder-1 gets work again");
  worker.set_connected(false);
  GoldenOfTest().Add(ResumedText(worker));
}

}  // namespace
}  // namespace hone::cli
