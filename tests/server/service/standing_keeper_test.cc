// Standings of workers after a restart, and with writes that fail.

#include "server/service/standing_keeper.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_store.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::IsEmpty;

// The parts of a server that deal with the standings of workers.
struct OneServer {
  OneServer(const FakeClock* clock, store::ManualStore* store)
      : fleet(clock, &artifacts,
              {.on_standing = [this](const std::string& id) { keeper.Keep(id); }}),
        keeper({.clock = clock, .steady_clock = clock, .fleet = &fleet, .store = store}) {
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
  fleet::SynchronizeReply reply;
  fleet::Fleet fleet;
  StandingKeeper keeper;
};

class StandingKeeperTest : public ::testing::Test {
 protected:
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    one_.Tick();
  }
  store::WorkerStanding Stored() {
    const auto all = store_.Standings();
    return all->empty() ? store::WorkerStanding() : all->front();
  }

  FakeClock clock_;
  store::ManualStore store_;
  OneServer one_{&clock_, &store_};
};

TEST_F(StandingKeeperTest, ALaterServerKnowsTheStandings) {
  for (const char* const id : {"drained", "flagged", "removed"}) one_.Call(id);
  ASSERT_THAT(one_.Drain("drained", false), IsOk());
  one_.fleet.Flag("flagged", "it lies");
  ASSERT_THAT(one_.fleet.Remove("removed"), IsOk());
  ASSERT_THAT(one_.Keep("removed"), IsOk());
  OneServer next(&clock_, &store_);
  for (const char* const id : {"drained", "flagged", "removed"}) {
    EXPECT_EQ(next.fleet.standings().Of(id), one_.fleet.standings().Of(id)) << id;
  }
  next.Call("removed");
  EXPECT_FALSE(next.reply.refused.empty());
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
  EXPECT_TRUE(one_.fleet.standings().Of("drained").drained);
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
