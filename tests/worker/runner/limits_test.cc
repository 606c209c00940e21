#include "worker/runner/limits.h"

#include <gtest/gtest.h>

#include <optional>

namespace hone::runner {
namespace {

TEST(LimitsTest, ReadsForHowLongAThreadHasWaited) {
  EXPECT_EQ(WaitedNsOfSchedule("123456789 4567 89\n"), 4567);
  EXPECT_EQ(WaitedNsOfSchedule("5000000000000 4000000000000 1\n"), 4e12);
  EXPECT_EQ(WaitedNsOfSchedule("7 0 1\n"), 0) << "it has run without waiting";
}

// Linux without CONFIG_SCHED_INFO says zeros, which must not pass for a thread that never waits.
TEST(LimitsTest, LinuxWithoutStatisticsIsFound) {
  EXPECT_EQ(WaitedNsOfSchedule("0 0 0\n"), std::nullopt);
  for (const char* const damaged : {"", "\n", "12", "12 \n", "no numbers"}) {
    EXPECT_EQ(WaitedNsOfSchedule(damaged), std::nullopt) << damaged;
  }
}

}  // namespace
}  // namespace hone::runner
