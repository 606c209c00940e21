#include "common/base/thread_priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

namespace hone {
namespace {

TEST(ThreadPriorityTest, AffectsOnlyTheCallingThread) {
  const int before = getpriority(PRIO_PROCESS, 0);
  if (before > 15) GTEST_SKIP() << "this process already has the lowest priority";
  int lowered = before;
  std::thread([&] {
    LowerThreadPriority(3);
    lowered = getpriority(PRIO_PROCESS, 0);
  }).join();
  EXPECT_EQ(lowered, before + 3);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}

}  // namespace
}  // namespace hone
