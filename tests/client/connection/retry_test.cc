#include "client/connection/retry.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::client {
namespace {

// A clock that advances only by sleeping.
struct FakeTime {
  absl::Time now = absl::UnixEpoch();
  std::vector<absl::Duration> sleeps;

  absl::Status Retry(const RetryOptions& options, const std::function<absl::Status()>& attempt) {
    return RetryUnavailable(
        options, attempt, [this] { return now; },
        [this](absl::Duration d) {
          sleeps.push_back(d);
          now += d;
        });
  }
};

TEST(RetryTest, RetriesOnlyUnavailable) {
  for (const auto code : {absl::StatusCode::kOk, absl::StatusCode::kDeadlineExceeded,
                          absl::StatusCode::kInvalidArgument, absl::StatusCode::kResourceExhausted,
                          absl::StatusCode::kAborted, absl::StatusCode::kInternal}) {
    FakeTime time;
    int attempts = 0;
    const absl::Status status = time.Retry({}, [&] {
      ++attempts;
      return absl::Status(code, "");
    });
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(attempts, 1);
  }
}

TEST(RetryTest, SucceedsWhenTheServerReturns) {
  FakeTime time;
  int attempts = 0;
  EXPECT_THAT(
      time.Retry({},
                 [&] { return ++attempts < 4 ? absl::UnavailableError("") : absl::OkStatus(); }),
      IsOk());
  EXPECT_EQ(attempts, 4);
}

TEST(RetryTest, GivesUpWithTheLastError) {
  FakeTime time;
  RetryOptions options;
  options.give_up_after = absl::Seconds(3);
  const absl::Status status =
      time.Retry(options, [] { return absl::UnavailableError("nobody there"); });
  EXPECT_EQ(status.message(), "nobody there");
  EXPECT_LE(time.now - absl::UnixEpoch(), absl::Seconds(3));
  EXPECT_GT(time.sleeps.size(), 3u);
}

TEST(BackoffTest, GrowsToItsLimitWithJitter) {
  RetryOptions options;
  options.first_wait = absl::Milliseconds(100);
  options.longest_wait = absl::Milliseconds(400);
  Backoff backoff(options);
  for (const int whole : {100, 200, 400, 400, 400}) {
    const absl::Duration wait = backoff.Next();
    EXPECT_GE(wait, absl::Milliseconds(whole) / 2);
    EXPECT_LE(wait, absl::Milliseconds(whole));
  }
  options.seed = 1;
  Backoff other(options);
  options.seed = 2;
  Backoff another(options);
  EXPECT_NE(other.Next(), another.Next()) << "clients that failed together must not retry together";
}

}  // namespace
}  // namespace hone::client
