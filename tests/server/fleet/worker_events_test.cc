// The events of workers, which the server logs.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fleet/fleet_harness.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class WorkerEventsTest : public ::testing::Test {
 protected:
  // Returns the events since the last call, as lines of the log.
  std::vector<std::string> News() { return std::exchange(events_, {}); }

  std::vector<std::string> events_;
  Harness harness_{{.on_event = [this](const std::string& id, const std::string& event) {
    events_.push_back(id + " " + event);
  }}};
  Fleet& fleet_ = harness_.fleet;
  FakeWorker worker_ = FakeWorker::Both("w", 4);
};

TEST_F(WorkerEventsTest, AWorkerJoinsIsLostAndComesBack) {
  const std::string offer = "target t on host host, builds in 4 slots, runs kernels";
  worker_.Call(fleet_);
  EXPECT_THAT(News(), ElementsAre("w joined: " + offer));
  worker_.Call(fleet_);
  harness_.Pass(absl::Seconds(1));
  worker_.Call(fleet_);
  EXPECT_THAT(News(), IsEmpty()) << "a heartbeat is no event";
  harness_.Pass(FleetOptions().silence_limit());
  harness_.Pass(absl::Seconds(5));
  EXPECT_THAT(News(),
              ElementsAre("w was lost: it was silent for 20 s; " + offer + ", last seen 20s ago"));
  worker_.Call(fleet_);
  EXPECT_THAT(News(), ElementsAre("w came back: " + offer + ", last seen 25s ago"));
}

TEST_F(WorkerEventsTest, ARestartedProcessIsOneEvent) {
  worker_.Call(fleet_);
  News();
  worker_.Restart("second");
  worker_.report.capabilities.build_slots = 1;
  worker_.report.capabilities.accelerator = "Big GPU";
  worker_.Call(fleet_);
  EXPECT_THAT(News(), ElementsAre("w connected again: its process was restarted; target t on host "
                                  "host, builds in 1 slot, runs kernels on Big GPU"));
}

TEST_F(WorkerEventsTest, AWorkerLeavesOnce) {
  worker_.Call(fleet_);
  News();
  worker_.report.draining = true;
  worker_.Call(fleet_);
  worker_.Call(fleet_);
  EXPECT_THAT(News(), ElementsAre(StartsWith("w left: it has ended; target t on host host")));
  harness_.Pass(absl::Seconds(30));
  worker_.Restart("second");
  worker_.report.draining = false;
  worker_.Call(fleet_);
  EXPECT_THAT(News(), ElementsAre(AllOf(StartsWith("w came back: target t"),
                                        EndsWith(", last seen 30s ago"))));
}

TEST_F(WorkerEventsTest, AnAdministratorsChangesAreEvents) {
  worker_.Call(fleet_);
  News();
  harness_.Pass(absl::Seconds(3));
  ASSERT_THAT(fleet_.Drain("w", /*resume=*/false), IsOk());
  ASSERT_THAT(fleet_.Drain("w", /*resume=*/false), IsOk());
  EXPECT_THAT(News(), ElementsAre(AllOf(StartsWith("w was drained by an administrator: target t"),
                                        EndsWith(", last seen 3s ago"))))
      << "the second drain changed nothing";
  ASSERT_THAT(fleet_.Drain("w", /*resume=*/true), IsOk());
  EXPECT_THAT(News(), ElementsAre(StartsWith("w was resumed by an administrator: target t")));
  ASSERT_THAT(fleet_.Remove("w"), IsOk());
  EXPECT_THAT(News(), ElementsAre(StartsWith("w was removed by an administrator: target t")));
  worker_.Call(fleet_);
  EXPECT_THAT(News(), IsEmpty()) << "a refused call is no event";
  ASSERT_THAT(fleet_.Drain("w", /*resume=*/true), IsOk());
  worker_.Call(fleet_);
  EXPECT_THAT(News(), ElementsAre("w was resumed by an administrator, not connected",
                                  StartsWith("w joined: ")));
}

}  // namespace
}  // namespace hone::fleet
