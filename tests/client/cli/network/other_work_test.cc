#include "client/cli/network/other_work.h"

#include <unistd.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_root.h"

namespace hone::cli {
namespace {

class OtherWorkTest : public ::testing::Test {
 protected:
  // The processor time of the machine so far, in seconds.
  void SetTimes(int user, int system, int idle, int steal) const {
    const int64_t ticks = sysconf(_SC_CLK_TCK);
    root_.Write("/proc/stat",
                absl::StrCat("cpu  ", user * ticks, " 0 ", system * ticks, " ", idle * ticks,
                             " 0 0 0 ", steal * ticks, " 0 0\ncpu0 1\n"));
  }

  FakeRoot root_;
  FakeClock clock_;
};

TEST_F(OtherWorkTest, CountsTheCoresThatOtherProgramsUse) {
  SetTimes(1000, 200, 5000, 7);
  const OtherWork work(&clock_, root_.path());
  SetTimes(1030, 205, 6000, 12);
  clock_.Advance(absl::Seconds(20));
  const std::optional<double> cores = work.Cores();
  ASSERT_TRUE(cores.has_value());
  // 40 s in 20 s, minus the time of this process, which is short.
  EXPECT_NEAR(*cores, 2, 0.1);
  EXPECT_GE(work.Interruptions(), 0);
}

TEST_F(OtherWorkTest, OwnWorkIsNotThatOfOthers) {
  SetTimes(1000, 200, 5000, 0);
  const OtherWork work(&clock_, root_.path());
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(work.Cores(), 0);
}

TEST_F(OtherWorkTest, SaysNothingWithoutKnowing) {
  const OtherWork blind(&clock_, root_.path());
  SetTimes(1000, 200, 5000, 0);
  const OtherWork early(&clock_, root_.path());
  SetTimes(1000, 201, 5000, 0);
  clock_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(early.Cores(), std::nullopt) << "a tick is 10 ms";
  clock_.Advance(absl::Seconds(9));
  EXPECT_NE(early.Cores(), std::nullopt);
  EXPECT_EQ(blind.Cores(), std::nullopt) << "there was no file";
}

}  // namespace
}  // namespace hone::cli
