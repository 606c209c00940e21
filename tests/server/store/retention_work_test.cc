#include <functional>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/retention.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_store.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
constexpr int kKept = 32 + 256;  // of each task: the fastest records, and others

class RetentionWorkTest : public testing::Test {
 protected:
  void Start(const RetentionPolicy& policy = {}) {
    work_ = std::make_unique<RetentionWork>(
        &wall_, &steady_, &store_,
        RetentionWork::Options{.policy = policy, .pause = absl::ZeroDuration()});
  }
  // Appends more records than are kept of each task.
  void AppendRecords(const std::string& workload, absl::Duration age, int more) {
    record::Record record = ScreenedRecord();
    record.workload_digest = workload;
    record.created_unix_ms = absl::ToUnixMillis(wall_.Now() - age);
    for (int i = 0; i < kKept + more; ++i) {
      record.result.latency_ns = 10 + i;
      ASSERT_THAT(Append(store_, record), IsOk());
    }
  }
  void Pass(absl::Duration time) {
    wall_.Advance(time);
    steady_.Advance(time);
    work_->Tick();
  }
  int64_t Records() {
    int64_t records = 0;
    EXPECT_THAT(store_.ForEachRecord({}, [&](const record::Record&) { ++records; }), IsOk());
    return records;
  }
  static bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 20000 && !condition(); ++i) absl::SleepFor(absl::Milliseconds(1));
    return condition();
  }
  bool HasRun() {
    return Eventually([&] {
      work_->Tick();
      return work_->stats().last_run_unix_s == absl::ToUnixSeconds(wall_.Now());
    });
  }

  FakeClock wall_, steady_;
  ManualStore store_;
  std::unique_ptr<RetentionWork> work_;
};

TEST_F(RetentionWorkTest, RemovesByAgeEveryDay) {
  AppendRecords("a", 400 * kDay, 12);
  AppendRecords("b", 300 * kDay, 12);
  Start();
  Pass(absl::Minutes(9));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(work_->stats().last_run_unix_s, 0);
  Pass(absl::Minutes(1));
  ASSERT_TRUE(HasRun());
  EXPECT_EQ(Records(), kKept + kKept + 12);
  EXPECT_FALSE(work_->stats().has_failed);
  // What becomes too old within the next day.
  AppendRecords("c", 365 * kDay - absl::Hours(12), 5);
  Pass(kDay - absl::Minutes(1));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(Records(), 3 * kKept + 12 + 5);
  Pass(absl::Minutes(2));
  ASSERT_TRUE(HasRun());
  EXPECT_EQ(Records(), 3 * kKept + 12);
}

TEST_F(RetentionWorkTest, AFailureIsReportedAndTriedAgain) {
  AppendRecords("a", 400 * kDay, 12);
  Start();
  store_.FailWrites(absl::InternalError("the disk is broken"));
  Pass(absl::Minutes(10));
  ASSERT_TRUE(Eventually([&] { return work_->stats().has_failed; }));
  EXPECT_EQ(work_->stats().last_run_unix_s, 0);
  store_.FailWrites(absl::OkStatus());
  Pass(absl::Minutes(50));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(work_->stats().has_failed);
  Pass(absl::Minutes(11));
  ASSERT_TRUE(Eventually([&] {
    Pass(absl::ZeroDuration());
    return !work_->stats().has_failed;
  }));
  EXPECT_EQ(Records(), kKept);
}

TEST_F(RetentionWorkTest, WithoutAPolicyAndOnAFullDiskNothingRuns) {
  AppendRecords("a", 400 * kDay, 12);
  constexpr absl::Duration kForever = absl::ZeroDuration();
  Start({.records = kForever,
         .bests = kForever,
         .events = kForever,
         .jobs = kForever,
         .most_bytes = 0});
  Pass(absl::Hours(2));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(work_->stats().last_run_unix_s, 0);
  Start();
  store_.SetSpace(absl::ResourceExhaustedError("the disk is full"));
  Pass(absl::Hours(2));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(work_->stats().has_failed);
  store_.SetSpace(absl::OkStatus());
  Pass(absl::Minutes(1));
  ASSERT_TRUE(HasRun());
  EXPECT_EQ(Records(), kKept);
}

TEST(RetentionPolicyTest, ConvertsAgesToTimes) {
  const absl::Time now = absl::FromUnixSeconds(2'000'000'000);
  const CompactOptions options = RetentionPolicy{.bests = absl::ZeroDuration()}.At(now);
  EXPECT_EQ(options.before.records, absl::ToUnixMillis(now - 365 * kDay));
  EXPECT_EQ(options.before.bests, 0);
  EXPECT_EQ(options.before.events, absl::ToUnixMillis(now - 90 * kDay));
  EXPECT_EQ(options.before.jobs, absl::ToUnixMillis(now - 180 * kDay));
  EXPECT_EQ(options.most_bytes, int64_t{64} << 30);
  EXPECT_EQ(options.spare_since_unix_ms, absl::ToUnixMillis(now - 30 * kDay));
}

}  // namespace
}  // namespace hone::store
