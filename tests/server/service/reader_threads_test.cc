#include "server/service/reads/reader_threads.h"

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/read_limit.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two threads for short reads, of which one caller gets one.
ReaderOptions TwoThreads() { return {.short_reads = {.threads = 2, .max_of_caller = 3}}; }

// Reads that last until they are told to end, or until their limit.
class ReaderThreadsTest : public ::testing::Test {
 protected:
  void Make(const ReaderOptions& options) { readers_ = std::make_unique<ReaderThreads>(options); }
  ~ReaderThreadsTest() override { end_ = true; }

  // Starts a read that runs until `end_` is set or its limit ends it. Returns its result.
  struct Result {
    std::atomic<bool> begun = false, gone = false;
    absl::Notification ended;
    absl::Status status;
  };
  std::shared_ptr<Result> Start(const std::string& caller, ReaderLane lane = ReaderLane::kShort) {
    auto result = std::make_shared<Result>();
    readers_->Run(
        {.lane = lane, .caller = caller, .cancelled = [result]() -> bool { return result->gone; }},
        [this, result](const absl::Status& admitted) {
          result->status = admitted;
          if (admitted.ok()) result->begun = true;
          while (result->status.ok() && !end_) {
            absl::SleepFor(absl::Milliseconds(1));
            result->status = store::ReadLimit::Check();
          }
          result->ended.Notify();
        });
    return result;
  }
  static bool Begins(const Result& result) {
    for (int i = 0; i < 30'000 && !result.begun; ++i) absl::SleepFor(absl::Milliseconds(1));
    return result.begun;
  }

  std::atomic<bool> end_ = false;
  std::unique_ptr<ReaderThreads> readers_;
};

TEST_F(ReaderThreadsTest, ACallerLeavesAThreadToOthers) {
  Make(TwoThreads());
  const auto first = Start("ann"), second = Start("ann");
  ASSERT_TRUE(Begins(*first));
  const auto other = Start("bob");
  EXPECT_TRUE(Begins(*other)) << "although ann's second read came before";
  EXPECT_FALSE(second->begun);
  end_ = true;
  second->ended.WaitForNotification();
  EXPECT_THAT(second->status, IsOk());
}

TEST_F(ReaderThreadsTest, LongReadsDoNotDelayShortOnes) {
  Make({.long_reads = {.threads = 1}});
  const auto slow = Start("ann", ReaderLane::kLong);
  ASSERT_TRUE(Begins(*slow));
  absl::Notification read;
  readers_->Run({.caller = "ann"}, [&](const absl::Status& admitted) {
    EXPECT_THAT(admitted, IsOk());
    read.Notify();
  });
  read.WaitForNotification();
}

TEST_F(ReaderThreadsTest, TooManyReadsOfOneCallerAreRefused) {
  Make(TwoThreads());
  std::vector<std::shared_ptr<Result>> admitted;
  for (int i = 0; i < 3; ++i) admitted.push_back(Start("ann"));
  const auto refused = Start("ann");
  refused->ended.WaitForNotification();
  EXPECT_THAT(refused->status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("ann has 3 reads"), HasSubstr("limit for one caller"))));
  EXPECT_TRUE(rpc::RetryAfter(refused->status).has_value());
  const auto other = Start("bob");
  EXPECT_TRUE(Begins(*other));
  ASSERT_TRUE(Begins(*admitted[0]));
  const ReaderThreads::Counts counts = readers_->counts(ReaderLane::kShort);
  EXPECT_EQ(counts.waiting, 2);
  EXPECT_EQ(counts.running, 2);
  EXPECT_EQ(counts.refused, 1);
  EXPECT_EQ(readers_->counts(ReaderLane::kLong).running, 0);
  end_ = true;
  for (const auto& one : admitted) one->ended.WaitForNotification();
}

TEST_F(ReaderThreadsTest, AReadThatContinuesACallIsNotRefused) {
  ReaderOptions options = TwoThreads();
  options.short_reads.max_wait = absl::ZeroDuration();
  Make(options);
  std::vector<std::shared_ptr<Result>> others = {Start("ann")};
  ASSERT_TRUE(Begins(*others[0]));
  for (int i = 0; i < 2; ++i) others.push_back(Start("ann"));
  absl::Notification read;
  readers_->Run({.caller = "ann", .continues = true}, [&](const absl::Status& admitted) {
    EXPECT_THAT(admitted, IsOk());
    read.Notify();
  });
  readers_->Tick();  // refuses those that wait
  for (int i = 1; i < 3; ++i) {
    others[i]->ended.WaitForNotification();
    EXPECT_THAT(others[i]->status,
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("waited 0 s")));
  }
  EXPECT_FALSE(read.HasBeenNotified());
  end_ = true;
  read.WaitForNotification();
}

TEST_F(ReaderThreadsTest, AReadEndsWithItsCaller) {
  Make(TwoThreads());
  const auto running = Start("ann"), waiting = Start("ann");
  ASSERT_TRUE(Begins(*running));
  waiting->gone = true;
  readers_->Tick();
  waiting->ended.WaitForNotification();
  EXPECT_THAT(waiting->status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_FALSE(running->ended.HasBeenNotified());
  running->gone = true;
  running->ended.WaitForNotification();
  EXPECT_THAT(running->status, StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ReaderThreadsTest, AReadHasALongestTime) {
  Make({.short_reads = {.max_time = absl::Milliseconds(20)}});
  const auto slow = Start("ann");
  slow->ended.WaitForNotification();
  EXPECT_TRUE(slow->begun);
  EXPECT_THAT(slow->status, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("for 0.02 s")));
}

TEST_F(ReaderThreadsTest, StopEndsAllReads) {
  Make(TwoThreads());
  const auto running = Start("ann"), waiting = Start("ann");
  ASSERT_TRUE(Begins(*running));
  readers_->Stop();
  const auto late = Start("bob");
  EXPECT_TRUE(readers_->Join(absl::InfiniteDuration()));
  for (const auto& one : {running, waiting, late}) {
    EXPECT_TRUE(one->ended.HasBeenNotified());
    EXPECT_THAT(one->status, StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST_F(ReaderThreadsTest, ADefectInAReadLeavesTheThread) {
  Make({.short_reads = {.threads = 1}});
  readers_->Run({.caller = "ann"}, [](const absl::Status&) { throw std::bad_alloc(); });
  end_ = true;
  const auto next = Start("ann");
  next->ended.WaitForNotification();
  EXPECT_THAT(next->status, IsOk());
}

}  // namespace
}  // namespace hone::service
