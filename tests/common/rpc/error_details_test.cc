#include "common/rpc/rate_limit.h"
#include "common/rpc/status.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/status.h"

namespace hone::rpc {
namespace {

TEST(ErrorDetailsTest, ReasonAndRetryDelayRoundTrip) {
  const absl::Status status = WithRetryAfter(
      WithReason(absl::ResourceExhaustedError("slow down"), "RATE_LIMITED", {{"limit", "5"}}),
      absl::Milliseconds(1500));
  const absl::Status back = FromGrpc(ToGrpc(status));
  EXPECT_EQ(back, status);
  EXPECT_EQ(ReasonOf(back), "RATE_LIMITED");
  EXPECT_EQ(RetryAfter(back), absl::Milliseconds(1500));
}

TEST(ErrorDetailsTest, DetailsAreOptional) {
  const absl::Status status = absl::NotFoundError("nothing");
  EXPECT_EQ(EncodeDetails(status), "");
  EXPECT_EQ(ReasonOf(status), "");
  EXPECT_FALSE(RetryAfter(status).has_value());
}

// google.rpc.Status{code: 8, message: "m", details: [Any{type_url, ErrorInfo{reason: "R",
// domain: "hone"}}]} as Protobuf writes it.
TEST(ErrorDetailsTest, TheBytesAreProtobufs) {
  const std::string bytes = EncodeDetails(WithReason(absl::ResourceExhaustedError("m"), "R"));
  const std::string info = "\x0a\x01R\x12\x04hone";
  const std::string url = "type.googleapis.com/google.rpc.ErrorInfo";
  const std::string any = "\x0a" + std::string(1, static_cast<char>(url.size())) + url + "\x12" +
                          std::string(1, static_cast<char>(info.size())) + info;
  EXPECT_EQ(bytes, "\x08\x08\x12\x01m\x1a" + std::string(1, static_cast<char>(any.size())) + any);
}

TEST(ErrorDetailsTest, DamagedBytesAreIgnored) {
  const std::string bytes = EncodeDetails(WithReason(absl::AbortedError("m"), "LOST"));
  for (size_t size = 0; size < bytes.size(); ++size) {
    absl::Status status = absl::AbortedError("m");
    DecodeDetails(absl::string_view(bytes).substr(0, size), status);
    EXPECT_EQ(ReasonOf(status), "") << size;
  }
}

TEST(RateLimitTest, LimitsEachCallerSeparately) {
  FakeClock clock;
  RateLimiter limiter(&clock, /*per_second=*/10, /*burst=*/20);
  for (int i = 0; i < 20; ++i) EXPECT_THAT(limiter.Admit("ann"), IsOk()) << i;
  const absl::Status refused = limiter.Admit("ann");
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_TRUE(RetryAfter(refused).has_value());
  EXPECT_EQ(*RetryAfter(refused), absl::Milliseconds(100));
  EXPECT_THAT(limiter.Admit("bob"), IsOk());
  clock.Advance(absl::Milliseconds(99));
  EXPECT_FALSE(limiter.Admit("ann").ok());
  clock.Advance(absl::Milliseconds(2));
  EXPECT_THAT(limiter.Admit("ann"), IsOk());
  EXPECT_FALSE(limiter.Admit("ann").ok());
  clock.Advance(absl::Hours(1));
  for (int i = 0; i < 20; ++i) EXPECT_THAT(limiter.Admit("ann"), IsOk()) << i;
  EXPECT_FALSE(limiter.Admit("ann").ok()) << "the burst is the limit";
}

TEST(RateLimitTest, ZeroMeansUnlimited) {
  FakeClock clock;
  RateLimiter limiter(&clock, 0, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_THAT(limiter.Admit("ann"), IsOk());
}

}  // namespace
}  // namespace hone::rpc
