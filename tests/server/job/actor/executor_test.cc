#include "server/job/actor/executor.h"

#include <atomic>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace hone::job {
namespace {

TEST(StrandTest, MessagesRunInOrderAndNeverTogether) {
  constexpr int kMessages = 2000;
  ThreadPool pool(4);
  Strand strand(&pool);
  absl::BlockingCounter left(kMessages);
  std::atomic<int> inside{0};
  std::vector<int> order;  // needs no lock, because the strand runs one message at a time
  for (int i = 0; i < kMessages; ++i) {
    strand.Post([&, i] {
      EXPECT_EQ(inside.fetch_add(1), 0);
      order.push_back(i);
      inside.fetch_sub(1);
      left.DecrementCount();
    });
  }
  left.Wait();
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(order[i], i);
}

TEST(ThreadPoolTest, RunsQueuedTasksBeforeShutdown) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(2);
    for (int i = 0; i < 100; ++i) pool.Schedule([&] { ran.fetch_add(1); });
  }
  EXPECT_EQ(ran.load(), 100);
}

TEST(ThreadPoolTest, StopReportsATaskThatDoesNotEnd) {
  absl::Notification may_end;
  ThreadPool pool(2);
  pool.Schedule([&] { may_end.WaitForNotification(); });
  EXPECT_FALSE(pool.Stop(absl::Milliseconds(20)));
  may_end.Notify();
  EXPECT_TRUE(pool.Stop());
}

TEST(ThreadPoolTest, TasksAfterShutdownDoNotRun) {
  std::atomic<int> ran{0};
  auto held = std::make_shared<int>(7);
  {
    ThreadPool pool(2);
    pool.Schedule([&] { ran.fetch_add(1); });
    pool.Stop();
    pool.Schedule([&ran, held] { ran.fetch_add(1); });
  }
  EXPECT_EQ(ran.load(), 1);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace hone::job
