#include "client/cli/worker_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

TEST(WorkerTextTest, OnlyWhatAnAdministratorDrainedIsDrained) {
  client::Worker worker{.id = "builder-1", .connected = true};
  EXPECT_EQ(WorkerState(worker), "connected");
  worker.stopping = true;
  EXPECT_EQ(WorkerState(worker), "stopped") << "a server of an earlier version waits for it";
  worker.connected = false;
  EXPECT_EQ(WorkerState(worker), "stopped");
  worker.draining = true;
  EXPECT_EQ(WorkerState(worker), "drained, disconnected");
}

TEST(WorkerTextTest, ResumingAWorkerThatIsNotConnectedDoesNotGiveItWork) {
  client::Worker worker{.id = "builder-1", .connected = true};
  EXPECT_EQ(ResumedText(worker), "builder-1 gets work again");
  worker.connected = false;
  EXPECT_THAT(ResumedText(worker), HasSubstr("builder-1 may work again but is not connected"));
  EXPECT_THAT(ResumedText(worker), HasSubstr("it connects within seconds"));
}

}  // namespace
}  // namespace hone::cli
