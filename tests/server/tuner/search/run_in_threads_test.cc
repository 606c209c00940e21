#include "server/tuner/search/run_in_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <set>
#include <stdexcept>
#include <string>

#include "absl/synchronization/mutex.h"

namespace hone::search {
namespace {

TEST(RunInThreads, CallsEachOnce) {
  for (const size_t count : {0, 1, 5}) {
    absl::Mutex mutex;
    std::multiset<size_t> called;
    RunInThreads(count, [&](size_t thread) {
      absl::MutexLock lock(&mutex);
      called.insert(thread);
    });
    EXPECT_EQ(called.size(), count);
    EXPECT_EQ(std::set<size_t>(called.begin(), called.end()).size(), count);
  }
}

TEST(RunInThreads, RethrowsAfterAllThreadsReturn) {
  for (const size_t thrower : {0, 1, 3}) {
    std::atomic<int> returned = 0;
    EXPECT_THROW(RunInThreads(4,
                              [&](size_t thread) {
                                if (thread == thrower) throw std::bad_alloc();
                                ++returned;
                              }),
                 std::bad_alloc);
    EXPECT_EQ(returned, 3);
  }
  try {
    RunInThreads(3, [](size_t thread) { throw std::runtime_error(std::to_string(thread)); });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "0");
  }
}

}  // namespace
}  // namespace hone::search
