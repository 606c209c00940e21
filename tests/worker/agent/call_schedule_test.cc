#include "worker/agent/call_schedule.h"

#include <gtest/gtest.h>

namespace hone::agent {
namespace {

class CallScheduleTest : public ::testing::Test {
 protected:
  static v1::SynchronizeResponse Response(int64_t next_call_ms, int64_t gather_ms = 0) {
    v1::SynchronizeResponse response;
    response.set_next_call_ms(next_call_ms);
    response.set_gather_ms(gather_ms);
    return response;
  }
  absl::Time At(int64_t ms) const { return begin_ + absl::Milliseconds(ms); }
  absl::Time Next(bool results = false, bool stocked = false) const {
    return schedule_.Next(results, stocked);
  }

  const absl::Time begin_ = absl::FromUnixSeconds(1000);
  CallSchedule schedule_;
};

TEST_F(CallScheduleTest, TheFirstCallBeginsAtOnce) {
  EXPECT_LE(Next(), begin_);
  const int64_t call = schedule_.Begin(false, begin_);
  EXPECT_TRUE(schedule_.IsInProgress(call));
  EXPECT_FALSE(schedule_.IsIdle());
  EXPECT_EQ(Next(), absl::InfiniteFuture()) << "the server holds it";
}

TEST_F(CallScheduleTest, WithoutNewsTheServerSetsTheNextCall) {
  EXPECT_FALSE(schedule_.Answer(schedule_.Begin(false, begin_), Response(700), At(100)));
  EXPECT_TRUE(schedule_.IsIdle());
  EXPECT_EQ(Next(), At(800));
  EXPECT_LT(Next(/*results=*/true), At(100)) << "news does not wait for it";
  schedule_.AddNews();
  EXPECT_LT(Next(), At(100));
}

TEST_F(CallScheduleTest, ResultsWaitToBeGatheredWhileThereIsWorkLeft) {
  schedule_.Answer(schedule_.Begin(false, begin_), Response(0, /*gather_ms=*/300), At(100));
  EXPECT_EQ(Next(/*results=*/true, /*stocked=*/true), At(300));
  EXPECT_LT(Next(/*results=*/true, /*stocked=*/false), At(100));
}

TEST_F(CallScheduleTest, OneCallMayCarryNewsWhileTheServerHoldsAnother) {
  schedule_.Begin(false, begin_);
  EXPECT_LT(Next(/*results=*/true), At(100));
  schedule_.Begin(true, At(100));
  EXPECT_EQ(Next(/*results=*/true), absl::InfiniteFuture()) << "two calls at most";
}

TEST_F(CallScheduleTest, ResultsWaitForTheAnswerToEarlierResults) {
  const int64_t call = schedule_.Begin(/*carries_results=*/true, begin_);
  EXPECT_EQ(Next(/*results=*/true), At(1000));
  schedule_.Answer(call, Response(0), At(10));
  EXPECT_LE(Next(/*results=*/true), At(10));
}

TEST_F(CallScheduleTest, AnOvertakenCallDoesNotSetTheNextOne) {
  const int64_t first = schedule_.Begin(false, begin_);
  const int64_t second = schedule_.Begin(true, At(10));
  schedule_.Answer(second, Response(500), At(20));
  schedule_.Answer(first, Response(9000), At(30));
  EXPECT_EQ(Next(), At(520));
}

TEST_F(CallScheduleTest, FailuresDelayTheNextCall) {
  const auto fail = [&](bool refused) {
    schedule_.Fail(schedule_.Begin(false, begin_), refused, begin_);
  };
  fail(/*refused=*/false);
  EXPECT_GE(Next(), At(50));
  EXPECT_LE(Next(), At(150));
  for (int i = 0; i < 10; ++i) fail(/*refused=*/false);
  EXPECT_GE(Next(), At(2500));
  EXPECT_LE(Next(), At(7500)) << "the delay is bounded";
  fail(/*refused=*/true);
  EXPECT_GE(Next(), At(20'000)) << "an administrator needs a while";
  EXPECT_LE(Next(), At(60'000));
  EXPECT_TRUE(schedule_.Answer(schedule_.Begin(false, begin_), Response(0), begin_));
  EXPECT_FALSE(schedule_.Answer(schedule_.Begin(false, begin_), Response(0), begin_));
}

TEST_F(CallScheduleTest, CallsAreHeldForTheServersLastHeartbeat) {
  v1::SynchronizeResponse response;
  response.set_heartbeat_ms(1234);
  schedule_.Answer(schedule_.Begin(false, begin_), response, begin_);
  schedule_.Answer(schedule_.Begin(false, begin_), Response(0), begin_);
  EXPECT_EQ(schedule_.MayHold(), absl::Milliseconds(1234));
}

TEST_F(CallScheduleTest, NoCallIsHeldUntilTheServerAnswers) {
  EXPECT_EQ(schedule_.MayHold(), absl::ZeroDuration()) << "the first answer says that it is there";
  schedule_.Answer(schedule_.Begin(false, begin_), Response(0), At(10));
  EXPECT_EQ(schedule_.MayHold(), absl::Seconds(10));
  EXPECT_LE(Next(), At(10)) << "the next call is long, and begins at once";
  schedule_.Fail(schedule_.Begin(false, At(10)), /*refused=*/false, At(20));
  EXPECT_EQ(schedule_.MayHold(), absl::ZeroDuration()) << "the server may be another one";
  schedule_.Answer(schedule_.Begin(false, At(200)), Response(30'000), At(210));
  EXPECT_EQ(schedule_.MayHold(), absl::Seconds(10));
  EXPECT_EQ(Next(), At(30'210)) << "a refused worker waits as long as the server says";
}

TEST(FailureLogTest, ReasonsThatChangeAreLoggedEverMoreRarely) {
  const absl::Time start = absl::UnixEpoch();
  const absl::Status refused = absl::UnavailableError("connection refused");
  FailureLog log;
  int count = 0;
  const auto log_for = [&](absl::Duration begin, absl::Duration end, const auto& reason) {
    const int before = count;
    for (absl::Duration t = begin; t < end; t += absl::Seconds(1)) {
      if (log.IsToBeLogged(reason(t), start + t)) ++count;
    }
    return count - before;
  };
  const auto same = [&](absl::Duration) { return refused; };
  // Contains the time of day.
  const auto clock = [&](absl::Duration t) {
    return absl::UnavailableError(absl::FormatDuration(absl::Floor(t, absl::Minutes(1))));
  };
  EXPECT_EQ(log_for(absl::ZeroDuration(), absl::Minutes(30), same), 1);
  EXPECT_EQ(log_for(absl::Minutes(30), absl::Minutes(31), clock), 1) << "the reason is another one";
  EXPECT_LE(log_for(absl::Minutes(31), absl::Hours(48), clock), 56);
  EXPECT_TRUE(log.IsToBeLogged(absl::UnauthenticatedError("no token"), start + absl::Hours(48)));
  EXPECT_TRUE(log.IsToBeLogged(refused, start + absl::Hours(48)));
  EXPECT_FALSE(log.IsToBeLogged(refused, start + absl::Hours(48)));
  log.NoteAnswer();
  EXPECT_TRUE(log.IsToBeLogged(refused, start + absl::Hours(48)));
}

}  // namespace
}  // namespace hone::agent
