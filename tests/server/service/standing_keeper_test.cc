// Standings of workers with server replicas that share a store, and with writes that fail.

#include "server/service/standing_keeper.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/manual_store.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::IsEmpty;

// The parts of a server that deal with the standings of workers.
struct Replica {
  Replica(const FakeClock* clock, store::ManualStore* store)
      : fleet(clock, &artifacts,
              {.on_standing = [this](const std::string& id) { keeper.Keep(id); }}),
        keeper({.clock = clock,
                .steady_clock = clock,
                .fleet = &fleet,
                .store = store,
                .executor = &executor}) {
    EXPECT_THAT(keeper.Restore(), IsOk());
  }
  void Call(const std::string& id) {
    fleet::WorkerReport report{.worker_id = id, .epoch = "e"};
    report.capabilities.can_run = true;
    report.capabilities.target_key = "t";
    fleet.Synchronize(std::move(report),
                      [&](fleet::SynchronizeReply answer) { reply = std::move(answer); });
  }
  void Tick() {
    fleet.Tick();
    keeper.Tick();
    executor.RunAll();
  }
  absl::Status Drain(const std::string& id, bool resume) {
    EXPECT_THAT(fleet.Drain(id, resume), IsOk());
    return Keep(id);
  }
  absl::Status Keep(const std::string& id) {
    absl::Status kept = absl::UnknownError("no answer");
    keeper.Keep(id, [&](absl::Status status) { kept = std::move(status); });
    return kept;
  }

  fleet::ArtifactCache artifacts;
  job::ManualExecutor executor;
  fleet::SynchronizeReply reply;
  fleet::Fleet fleet;
  StandingKeeper keeper;
};

class StandingKeeperTest : public ::testing::Test {
 protected:
  StandingKeeperTest() { store_.Share(); }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    one_.Tick();
    two_.Tick();
  }
  store::WorkerStanding Stored() {
    const auto all = store_.Standings();
    return all->empty() ? store::WorkerStanding() : all->front();
  }

  FakeClock clock_;
  store::ManualStore store_;
  Replica one_{&clock_, &store_};
  Replica two_{&clock_, &store_};
};

TEST_F(StandingKeeperTest, ReplicasDoNotOverwriteEachOther) {
  one_.Call("w");
  two_.Call("w");
  Pass(absl::ZeroDuration());  // both have just read the store
  ASSERT_THAT(one_.Drain("w", false), IsOk());
  two_.fleet.Flag("w", "it lies");  // two has not heard of the drain
  EXPECT_TRUE(Stored().drained);
  EXPECT_EQ(Stored().refused, "it lies");
  Replica next(&clock_, &store_);
  EXPECT_TRUE(next.fleet.standings().Of("w").drained);
}

TEST_F(StandingKeeperTest, ReplicaLearnsOfStateChanges) {
  for (const char* const id : {"drained", "flagged", "removed"}) {
    one_.Call(id);
    two_.Call(id);
  }
  Pass(absl::ZeroDuration());
  ASSERT_THAT(one_.Drain("drained", false), IsOk());
  one_.fleet.Flag("flagged", "it lies");
  ASSERT_THAT(one_.fleet.Remove("removed"), IsOk());
  ASSERT_THAT(one_.Keep("removed"), IsOk());
  Pass(StandingKeeper::kLookInterval);
  for (const char* const id : {"drained", "flagged", "removed"}) {
    EXPECT_EQ(two_.fleet.standings().Of(id), one_.fleet.standings().Of(id)) << id;
  }
  two_.Call("removed");
  EXPECT_FALSE(two_.reply.refused.empty());
  ASSERT_THAT(two_.Drain("removed", true), IsOk()) << "resumed at the other replica";
  Pass(StandingKeeper::kLookInterval);
  EXPECT_TRUE(one_.fleet.standings().Of("removed").refused.empty());
  EXPECT_TRUE(one_.fleet.standings().Of("drained").drained);
}

TEST_F(StandingKeeperTest, UnsharedStoreIsNotPolled) {
  store::ManualStore alone;
  Replica server(&clock_, &alone);
  alone.ChangeStanding({.worker_id = "w", .drained = true}, [](const absl::Status&) {});
  clock_.Advance(10 * StandingKeeper::kLookInterval);
  server.Tick();
  EXPECT_FALSE(server.fleet.standings().Of("w").drained);
}

TEST_F(StandingKeeperTest, FailedWritesAreRetried) {
  one_.Call("flagged");
  one_.Call("drained");
  store_.FailWrites(absl::ResourceExhaustedError("the disk is full"));
  one_.fleet.Flag("flagged", "it lies");
  EXPECT_THAT(one_.Drain("drained", false), StatusIs(absl::StatusCode::kResourceExhausted))
      << "the caller is told";
  EXPECT_EQ(one_.keeper.unstored(), 2);
  for (int i = 0; i < 10; ++i) Pass(absl::Milliseconds(100));
  Pass(StandingKeeper::kLookInterval);
  EXPECT_TRUE(one_.fleet.standings().Of("drained").drained) << "reading the store does not undo it";
  EXPECT_FALSE(one_.fleet.standings().Of("flagged").refused.empty());
  EXPECT_EQ(one_.keeper.unstored(), 2);

  store_.FailWrites(absl::OkStatus());
  EXPECT_THAT(store_.Standings().value(), IsEmpty());
  Pass(StandingKeeper::kLongestRetry);
  EXPECT_EQ(one_.keeper.unstored(), 0);
  const auto stored = store_.Standings().value();
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_TRUE(stored[0].drained);
  EXPECT_EQ(stored[1].refused, "it lies");
  EXPECT_FALSE(one_.fleet.standings().Unstored("flagged").has_value());
}

TEST_F(StandingKeeperTest, RetriesBackOffAndWriteTheLatestState) {
  one_.Call("w");
  store_.FailWrites(absl::ResourceExhaustedError("the disk is full"));
  one_.fleet.Flag("w", "it lies");
  Pass(StandingKeeper::kFirstRetry);      // fails: the next retry waits twice as long
  Pass(2 * StandingKeeper::kFirstRetry);  // fails: the next retry waits four times as long
  store_.FailWrites(absl::OkStatus());
  Pass(3 * StandingKeeper::kFirstRetry);
  EXPECT_EQ(one_.keeper.unstored(), 1);
  EXPECT_THAT(store_.Standings().value(), IsEmpty());
  Pass(StandingKeeper::kFirstRetry);
  EXPECT_EQ(one_.keeper.unstored(), 0);
  EXPECT_EQ(Stored().refused, "it lies");

  store_.FailWrites(absl::ResourceExhaustedError("the disk is full"));
  ASSERT_THAT(one_.fleet.Drain("w", false), IsOk());
  EXPECT_FALSE(one_.Keep("w").ok());
  EXPECT_FALSE(one_.Drain("w", true).ok()) << "the resumption is not stored either";
  store_.FailWrites(absl::OkStatus());
  Pass(2 * StandingKeeper::kFirstRetry);
  EXPECT_EQ(one_.keeper.unstored(), 0);
  EXPECT_THAT(store_.Standings().value(), IsEmpty());
}

}  // namespace
}  // namespace hone::service
