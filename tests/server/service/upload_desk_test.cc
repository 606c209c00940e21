#include "server/service/upload_desk.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace hone::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(UploadDeskTest, BytesUnderWayAreBoundedOverAllStreams) {
  FakeClock clock;
  UploadDesk desk(&clock, {.max_bytes = 100});
  const int64_t a = desk.Enter([] {}), b = desk.Enter([] {}), c = desk.Enter([] {});
  EXPECT_TRUE(desk.Reserve(a, 60).ok());
  const absl::Status refused = desk.Reserve(b, 41);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("41 bytes"), HasSubstr("60 of"), HasSubstr("again in a second")));
  EXPECT_TRUE(desk.Reserve(c, 40).ok()) << "what was refused holds nothing";
  desk.Leave(b);
  EXPECT_FALSE(desk.Reserve(desk.Enter([] {}), 1).ok());
  desk.Leave(a);
  EXPECT_TRUE(desk.Reserve(desk.Enter([] {}), 60).ok());
}

TEST(UploadDeskTest, WhatStandsStillIsEndedAndMakesRoom) {
  FakeClock clock;
  UploadDesk desk(&clock, {.max_bytes = 100, .stall_limit = absl::Seconds(60)});
  int cancelled = 0, moving = 0;
  const int64_t stalled = desk.Enter([&] { ++cancelled; });
  const int64_t slow = desk.Enter([&] { ++moving; });
  ASSERT_TRUE(desk.Reserve(stalled, 60).ok());
  for (int i = 0; i < 12; ++i) {
    clock.Advance(absl::Seconds(10));
    desk.Progress(slow);
    desk.Tick();
  }
  EXPECT_EQ(cancelled, 1) << "once";
  EXPECT_EQ(moving, 0);
  desk.Leave(stalled);  // its stream has ended
  EXPECT_TRUE(desk.Reserve(slow, 100).ok());
}

}  // namespace
}  // namespace hone::service
