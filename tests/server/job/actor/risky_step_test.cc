#include <gtest/gtest.h>

#include "server/job/actor/job_types.h"

namespace hone::job {
namespace {

TEST(RiskyStep, CrashIsBlamedOnlyWithoutAReboot) {
  const RiskyStep step{.name = "proposing", .server = "host/11/1/1", .boot = "a"};
  EXPECT_TRUE(EndedByItself(step, "host/12/2/1", "a"));
  EXPECT_FALSE(EndedByItself(step, "host/12/2/1", "b")) << "the machine was rebooted";
  EXPECT_FALSE(EndedByItself(step, "host/11/1/1", "a")) << "the same server released the job";
  EXPECT_TRUE(EndedByItself(step, "another/12/2/1", "b"))
      << "reboots of other machines are unknown";
}

TEST(RiskyStep, BootIdIsStable) { EXPECT_EQ(ThisBoot(), ThisBoot()); }

}  // namespace
}  // namespace hone::job
