#include "common/record/framing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "absl/time/clock.h"
#include "tests/status.h"

namespace hone::record {
namespace {

using ::testing::HasSubstr;

class FramingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(pipe(ends_), 0);
  }
  void TearDown() override {
    CloseReader();
    CloseWriter();
  }
  void CloseReader() { Close(ends_[0]); }
  void CloseWriter() { Close(ends_[1]); }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }

 private:
  static void Close(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  int ends_[2] = {-1, -1};
};

TEST_F(FramingTest, MessagesKeepOrderAndBoundaries) {
  const std::string large(1 << 20, 'x');  // more than a pipe holds
  std::thread sender([&] {
    EXPECT_THAT(WriteFrame(writer(), "first"), IsOk());
    EXPECT_THAT(WriteFrame(writer(), ""), IsOk());
    EXPECT_THAT(WriteFrame(writer(), large), IsOk());
    CloseWriter();
  });
  EXPECT_EQ(ReadFrame(reader()).value(), "first");
  EXPECT_EQ(ReadFrame(reader()).value(), "");
  EXPECT_EQ(ReadFrame(reader()).value(), large);
  EXPECT_THAT(ReadFrame(reader()), StatusIs(absl::StatusCode::kOutOfRange));
  sender.join();
}

TEST_F(FramingTest, ReportsATruncatedMessage) {
  const char header_and_two[] = {5, 0, 0, 0, 'a', 'b'};
  ASSERT_EQ(write(writer(), header_and_two, 6), 6);
  CloseWriter();
  EXPECT_THAT(ReadFrame(reader()), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("2 of 5")));
}

TEST_F(FramingTest, ReportsATruncatedLength) {
  ASSERT_EQ(write(writer(), "\5", 1), 1);
  CloseWriter();
  EXPECT_THAT(ReadFrame(reader()), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(FramingTest, RefusesOversizedMessages) {
  const unsigned char header[] = {1, 0, 0, 4};  // 64 MiB + 1
  ASSERT_EQ(write(writer(), header, 4), 4);
  EXPECT_THAT(ReadFrame(reader()), StatusIs(absl::StatusCode::kInvalidArgument));
  const std::string too_long(kMaxFrameBytes + 1, 'x');
  EXPECT_THAT(WriteFrame(writer(), too_long), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(HasInput(reader()));  // nothing was written
}

TEST_F(FramingTest, ReadHonorsItsDeadline) {
  EXPECT_THAT(ReadFrame(reader(), absl::Now() + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_EQ(write(writer(), "\5\0", 2), 2);  // a message that never completes
  EXPECT_THAT(ReadFrame(reader(), absl::Now() + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(FramingTest, WriteToAStuckReaderHonorsItsDeadline) {
  const std::string large(1 << 20, 'x');
  EXPECT_THAT(WriteFrame(writer(), large, absl::Now() + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(FramingTest, WriteToAClosedReaderIsUnavailable) {
  CloseReader();
  EXPECT_THAT(WriteFrame(writer(), "x"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(FramingTest, HasInputReportsDataAndEndOfFile) {
  EXPECT_FALSE(HasInput(reader()));
  ASSERT_THAT(WriteFrame(writer(), "x"), IsOk());
  EXPECT_TRUE(HasInput(reader()));
  ASSERT_THAT(ReadFrame(reader()), IsOk());
  CloseWriter();
  EXPECT_TRUE(HasInput(reader()));
}

}  // namespace
}  // namespace hone::record
