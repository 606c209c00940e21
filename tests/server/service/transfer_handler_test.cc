#include "server/service/transfer_handler.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/status.h"

namespace hone::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TransferHandlerTest, BytesInFlightAreBounded) {
  FakeClock clock;
  TransferHandler uploads("upload", &clock, {.max_bytes = 100});
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

TEST(TransferHandlerTest, StalledUploadIsCancelledAndFreesSpace) {
  FakeClock clock;
  TransferHandler uploads("upload", &clock, {.max_bytes = 100, .stall_limit = absl::Seconds(60)});
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

TEST(TransferHandlerTest, AReceivedUploadIsNotCancelledButHoldsItsBytes) {
  FakeClock clock;
  TransferHandler uploads("upload", &clock, {.max_bytes = 100, .stall_limit = absl::Seconds(60)});
  int cancelled = 0;
  const int64_t upload = uploads.Enter([&] { ++cancelled; });
  ASSERT_THAT(uploads.Reserve(upload, 60), IsOk());
  uploads.Pause(upload);
  clock.Advance(absl::Minutes(7));
  uploads.Tick();
  EXPECT_EQ(cancelled, 0);
  EXPECT_FALSE(uploads.Reserve(uploads.Enter([] {}), 60).ok());
  uploads.Leave(upload);
  EXPECT_THAT(uploads.Reserve(uploads.Enter([] {}), 60), IsOk());
}

TEST(TransferHandlerTest, ATransferMayStallAgainAfterAPause) {
  FakeClock clock;
  TransferHandler downloads("download", &clock, {.stall_limit = absl::Seconds(60)});
  int cancelled = 0;
  const int64_t download = downloads.Enter([&] { ++cancelled; });
  downloads.Pause(download);
  clock.Advance(absl::Minutes(2));
  downloads.Tick();
  EXPECT_EQ(cancelled, 0);
  downloads.Progress(download);
  clock.Advance(absl::Seconds(59));
  downloads.Tick();
  EXPECT_EQ(cancelled, 0);
  clock.Advance(absl::Seconds(1));
  downloads.Tick();
  EXPECT_EQ(cancelled, 1);
}

TEST(TransferHandlerTest, SharedBytesCountOnce) {
  FakeClock clock;
  TransferHandler downloads("download", &clock, {.max_bytes = 100});
  const std::string artifact(60, 'a'), other(60, 'b');
  const int64_t a = downloads.Enter([] {}), b = downloads.Enter([] {}), c = downloads.Enter([] {});
  EXPECT_THAT(downloads.Reserve(a, 60, &artifact), IsOk());
  EXPECT_THAT(downloads.Reserve(b, 60, &artifact), IsOk());
  EXPECT_THAT(downloads.Reserve(c, 60, &other),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("download: not enough")));
  downloads.Leave(a);
  EXPECT_FALSE(downloads.Reserve(c, 60, &other).ok()) << "another download holds them";
  downloads.Leave(b);
  EXPECT_THAT(downloads.Reserve(c, 60, &other), IsOk());
  downloads.Leave(c);
  EXPECT_THAT(downloads.Reserve(downloads.Enter([] {}), 100, &artifact), IsOk());
}

}  // namespace
}  // namespace hone::service
