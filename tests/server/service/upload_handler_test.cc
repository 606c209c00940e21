#include "server/service/upload_handler.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(UploadHandlerTest, BytesInFlightAreBounded) {
  FakeClock clock;
  UploadHandler uploads(&clock, {.max_bytes = 100});
  const int64_t a = uploads.Enter([] {}), b = uploads.Enter([] {}), c = uploads.Enter([] {});
  EXPECT_THAT(uploads.Reserve(a, 60), IsOk());
  EXPECT_THAT(uploads.Reserve(b, 41), StatusIs(absl::StatusCode::kResourceExhausted,
                                               AllOf(HasSubstr("41 bytes"), HasSubstr("60 of"),
                                                     HasSubstr("again in a second"))));
  EXPECT_THAT(uploads.Reserve(c, 40), IsOk()) << "a refused reservation holds nothing";
  uploads.Leave(b);
  EXPECT_FALSE(uploads.Reserve(uploads.Enter([] {}), 1).ok());
  uploads.Leave(a);
  EXPECT_THAT(uploads.Reserve(uploads.Enter([] {}), 60), IsOk());
}

TEST(UploadHandlerTest, StalledUploadIsCancelledAndFreesSpace) {
  FakeClock clock;
  UploadHandler uploads(&clock, {.max_bytes = 100, .stall_limit = absl::Seconds(60)});
  int cancelled = 0, moving = 0;
  const int64_t stalled = uploads.Enter([&] { ++cancelled; });
  const int64_t slow = uploads.Enter([&] { ++moving; });
  ASSERT_THAT(uploads.Reserve(stalled, 60), IsOk());
  for (int i = 0; i < 12; ++i) {
    clock.Advance(absl::Seconds(10));
    uploads.Progress(slow);
    uploads.Tick();
  }
  EXPECT_EQ(cancelled, 1) << "cancelled only once";
  EXPECT_EQ(moving, 0);
  uploads.Leave(stalled);  // its stream has ended
  EXPECT_THAT(uploads.Reserve(slow, 100), IsOk());
}

TEST(UploadHandlerTest, AReceivedUploadIsNotCancelledButHoldsItsBytes) {
  FakeClock clock;
  UploadHandler uploads(&clock, {.max_bytes = 100, .stall_limit = absl::Seconds(60)});
  int cancelled = 0;
  const int64_t upload = uploads.Enter([&] { ++cancelled; });
  ASSERT_THAT(uploads.Reserve(upload, 60), IsOk());
  uploads.Received(upload);
  clock.Advance(absl::Minutes(7));
  uploads.Tick();
  EXPECT_EQ(cancelled, 0);
  EXPECT_FALSE(uploads.Reserve(uploads.Enter([] {}), 60).ok());
  uploads.Leave(upload);
  EXPECT_THAT(uploads.Reserve(uploads.Enter([] {}), 60), IsOk());
}

}  // namespace
}  // namespace hone::service
