#include "common/target/loop_parts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/target/thread_pool.h"
#include "tests/status.h"

namespace hone::target {
namespace {

using Body = std::function<void(int64_t begin, int64_t end, int64_t thread)>;

void RunLoop(const HoneRuntime& runtime, int64_t extent, Body body) {
  runtime.parallel_for(
      &runtime, extent, 0, runtime.threads,
      [](void* context, int64_t begin, int64_t end, int64_t thread) {
        (*static_cast<Body*>(context))(begin, end, thread);
      },
      &body);
}

void Work(absl::Duration time) {
  for (const absl::Time end = SteadyNow() + time; SteadyNow() < end;) {
  }
}

TEST(LoopPartsTest, EachIterationRunsOnce) {
  for (const int threads : {1, 2, 3}) {
    const HoneRuntime pool = hone_threads(threads);
    for (const int64_t extent : {0, 1, 2, 7, 5000}) {
      LoopParts parts(pool, [] { return absl::OkStatus(); });
      std::vector<std::atomic<int>> runs(extent);
      std::atomic<bool> is_thread = true;
      RunLoop(parts.runtime(), extent, [&](int64_t begin, int64_t end, int64_t thread) {
        if (thread < 0 || thread >= threads) is_thread = false;
        for (int64_t i = begin; i < end; ++i) ++runs[i];
      });
      for (int64_t i = 0; i < extent; ++i) EXPECT_EQ(runs[i], 1) << i;
      EXPECT_TRUE(is_thread);
    }
  }
}

TEST(LoopPartsTest, LongLoopsHavePausesAndShortOnesFew) {
  const HoneRuntime pool = hone_threads(2);
  int pauses = 0;
  LoopParts parts(pool, [&] {
    ++pauses;
    return absl::OkStatus();
  });
  RunLoop(parts.runtime(), 40, [](int64_t begin, int64_t end, int64_t) {
    Work(absl::Milliseconds(25) * (end - begin));  // longer than a part may take
  });
  EXPECT_EQ(pauses, 20);
  pauses = 0;
  RunLoop(parts.runtime(), int64_t{1} << 30, [](int64_t, int64_t, int64_t) {});
  EXPECT_LE(pauses, 200) << "parts that take no time must grow";
}

TEST(LoopPartsTest, LoopsInsideOfALoopRunWhole) {
  const HoneRuntime pool = hone_threads(2);
  int pauses = 0;
  LoopParts parts(pool, [&] {
    ++pauses;
    return absl::OkStatus();
  });
  std::atomic<int64_t> iterations = 0;
  RunLoop(parts.runtime(), 2, [&](int64_t begin, int64_t end, int64_t) {
    for (; begin < end; ++begin) {
      RunLoop(parts.runtime(), 1000,
              [&](int64_t from, int64_t to, int64_t) { iterations += to - from; });
    }
  });
  EXPECT_EQ(iterations, 2000);
  EXPECT_EQ(pauses, 1);
}

TEST(LoopPartsTest, AnErrorEndsAllLoops) {
  const HoneRuntime pool = hone_threads(2);
  LoopParts parts(pool, [] { return absl::DeadlineExceededError("enough"); });
  std::atomic<int64_t> iterations = 0;
  for (int loop = 0; loop < 2; ++loop) {
    RunLoop(parts.runtime(), 1000,
            [&](int64_t begin, int64_t end, int64_t) { iterations += end - begin; });
  }
  EXPECT_EQ(iterations, 2);
  EXPECT_THAT(parts.status(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace hone::target
