// What a server remembers of workers, also when the wall clock is changed.

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/standing_keeper.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_store.h"
#include "tests/status.h"

namespace hone::service {
namespace {

class WorkerMemoryTest : public ::testing::Test {
 protected:
  void Call(const std::string& id) {
    fleet::WorkerReport report{.worker_id = id, .epoch = "e"};
    report.capabilities.can_run = true;
    report.capabilities.target_key = "t";
    fleet_.Synchronize(std::move(report), [](const fleet::SynchronizeReply&) {});
  }
  void Pass(absl::Duration time) {
    wall_.Advance(time);
    steady_.Advance(time);
    memory_.Tick();
  }
  int64_t StoredMs(const std::string& id) {
    const std::vector<store::KnownWorker> workers = store_.Workers().value();
    for (const store::KnownWorker& worker : workers) {
      if (worker.worker_id == id) return worker.seen_unix_ms;
    }
    return 0;
  }

  FakeClock wall_, steady_;
  store::ManualStore store_;
  fleet::ArtifactCache artifacts_;
  fleet::Fleet fleet_{&steady_, &artifacts_, {}};
  WorkerMemory memory_{
      {.clock = &wall_, .steady_clock = &steady_, .fleet = &fleet_, .store = &store_}};
};

TEST_F(WorkerMemoryTest, AnAbsentWorkerIsForgottenWhenItsTimeIsOver) {
  const absl::Duration memory = absl::Milliseconds(store::Store::kWorkerMemoryMs);
  store_.PutWorker({.worker_id = "old",
                    .seen_unix_ms = absl::ToUnixMillis(wall_.Now() - memory + absl::Minutes(1))},
                   [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  ASSERT_THAT(memory_.Restore(), IsOk());
  Pass(absl::Seconds(10));
  EXPECT_EQ(memory_.WithAbsent({}).size(), 1u);
  Pass(absl::Minutes(1));
  EXPECT_THAT(memory_.WithAbsent({}), testing::IsEmpty());
}

TEST_F(WorkerMemoryTest, AWorkerThatIsRemovedAtOnceStaysInTheList) {
  Call("w");
  memory_.Keep("w");
  memory_.Keep("unknown");
  ASSERT_THAT(fleet_.Remove("w"), IsOk());
  ASSERT_THAT(fleet_.Drain("w", /*resume=*/true), IsOk());
  const std::vector<fleet::WorkerInfo> list = memory_.WithAbsent(fleet_.KnownWorkers());
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].id, "w");
  EXPECT_EQ(list[0].capabilities.target_key, "t");
  EXPECT_FALSE(list[0].connected);
  EXPECT_GT(StoredMs("w"), 0);
}

// A killed server stores nothing at its end.
TEST_F(WorkerMemoryTest, TheLastCallOfAConnectedWorkerIsStoredOften) {
  int64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    Call("w");
    Pass(absl::Seconds(1));
    const int64_t stored = StoredMs("w");
    EXPECT_GE(stored, absl::ToUnixMillis(wall_.Now() - absl::Seconds(15)));
    if (stored != before && before != 0) {
      EXPECT_GE(stored, before + 10'000) << "more often is not worth a write";
    }
    before = stored;
  }
}

TEST_F(WorkerMemoryTest, ManyWorkersAreStoredLessOften) {
  EXPECT_EQ(WorkerMemory::RefreshInterval(1), absl::Seconds(10));
  EXPECT_EQ(WorkerMemory::RefreshInterval(10'000), absl::Seconds(100));
}

TEST_F(WorkerMemoryTest, CallsAreStoredAfterTheWallClockWasSetBack) {
  Call("w");
  Pass(WorkerMemory::kLookInterval);
  const int64_t before = StoredMs("w");
  ASSERT_GT(before, 0);
  wall_.Advance(-absl::Hours(1));
  Call("w");
  Pass(WorkerMemory::kLookInterval);
  EXPECT_GT(StoredMs("w"), 0);
  EXPECT_LT(StoredMs("w"), before - absl::ToInt64Milliseconds(absl::Minutes(50)));
}

}  // namespace
}  // namespace hone::service
