#include "common/target/thread_pool.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_root.h"

namespace {

using Work = std::function<void(int64_t begin, int64_t end, int64_t thread)>;

void ParallelFor(const HoneRuntime& runtime, int64_t extent, int64_t chunk, int32_t threads,
                 const Work& work) {
  runtime.parallel_for(
      &runtime, extent, chunk, threads,
      [](void* context, int64_t begin, int64_t end, int64_t thread) {
        (*static_cast<const Work*>(context))(begin, end, thread);
      },
      const_cast<Work*>(&work));
}

// Counts the calls of each iteration and the parts that run with each thread number.
class Ledger {
 public:
  Ledger(int64_t extent, int32_t threads) : calls_(extent), running_(threads) {}

  void Run(int64_t begin, int64_t end, int64_t thread) {
    ASSERT_TRUE(thread >= 0 && thread < static_cast<int64_t>(running_.size())) << thread;
    if (running_[thread]++ != 0) shared_ = true;
    for (int64_t i = begin; i < end; ++i) ++calls_[i];
    --running_[thread];
  }
  bool shared() const { return shared_; }
  bool EachOnce() const {
    for (const std::atomic<int>& calls : calls_) {
      if (calls != 1) return false;
    }
    return true;
  }

 private:
  std::vector<std::atomic<int>> calls_;
  std::vector<std::atomic<int>> running_;
  std::atomic<bool> shared_ = false;
};

// Runs a loop and expects that each iteration runs once and no thread number twice at a time.
void ExpectRight(const HoneRuntime& runtime, int64_t extent, int64_t chunk, int32_t threads) {
  Ledger ledger(extent, threads);
  ParallelFor(runtime, extent, chunk, threads,
              [&](int64_t begin, int64_t end, int64_t thread) { ledger.Run(begin, end, thread); });
  EXPECT_TRUE(ledger.EachOnce()) << extent << " by " << chunk << " on " << threads;
  EXPECT_FALSE(ledger.shared()) << extent << " by " << chunk << " on " << threads;
}

// Waits until a condition holds, and returns whether it did within ten seconds.
bool Await(const std::function<bool()>& condition) {
  for (int i = 0; i < 10000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

int ThreadsOfProcess() {
  int threads = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    (void)each;
    ++threads;
  }
  return threads;
}

TEST(ThreadPoolTest, EachIterationRunsOnceForAnyNumberOfThreads) {
  for (const int32_t threads : {1, 2, 3, 5, 16, 31, 32, 33, 64}) {
    const HoneRuntime runtime = hone_threads(threads);
    EXPECT_EQ(runtime.threads, threads);
    for (const int64_t extent : {0, 1, 2, 3, 7, 64, 65, 1000}) {
      for (const int64_t chunk : {0, 1, 3, 2000}) ExpectRight(runtime, extent, chunk, threads);
    }
    // A kernel may use fewer threads than the runtime has.
    ExpectRight(runtime, 100, 0, std::max(1, threads / 2));
  }
}

TEST(ThreadPoolTest, PartsBeginWhereTheContractSays) {
  // Without other threads' shares: the first part of each thread begins at thread * extent /
  // threads. Every body waits until all have begun, so nobody takes over the part of another.
  const HoneRuntime runtime = hone_threads(3);
  std::atomic<int> begun = 0;
  std::vector<int64_t> first(3, -1);
  ParallelFor(runtime, 100, 0, 3, [&](int64_t begin, int64_t, int64_t thread) {
    if (first[thread] >= 0) return;
    first[thread] = begin;
    ++begun;
    Await([&] { return begun == 3; });
  });
  EXPECT_THAT(first, ::testing::ElementsAre(0, 33, 66));
}

TEST(ThreadPoolTest, LargeExtentsAreCovered) {
  std::atomic<int64_t> sum = 0;
  const int64_t extent = int64_t{1} << 40;
  for (const int64_t chunk : {int64_t{0}, int64_t{3}}) {
    sum = 0;
    ParallelFor(hone_threads(2), extent, chunk == 0 ? 0 : extent / 100, 2,
                [&](int64_t begin, int64_t end, int64_t) { sum += end - begin; });
    EXPECT_EQ(sum, extent);
  }
}

TEST(ThreadPoolTest, OthersTakeOverWhatAThreadWithoutACoreHasNotBegun) {
  // The thread with iteration 0 waits until all iterations outside of its share are done: also
  // those of the part that it would have computed alone.
  for (const int64_t chunk : {0, 1}) {
    constexpr int64_t kExtent = 64;
    std::atomic<int64_t> others = 0;
    std::atomic<int64_t> of_blocked = 0;
    bool finished = false;
    ParallelFor(hone_threads(2), kExtent, chunk, 2, [&](int64_t begin, int64_t end, int64_t) {
      if (begin > 0) {
        const auto stop =
            std::chrono::steady_clock::now() + (end - begin) * std::chrono::microseconds(20);
        while (std::chrono::steady_clock::now() < stop) {
        }
        others += end - begin;
        return;
      }
      of_blocked = end;
      finished = Await([&] { return others == kExtent - of_blocked; });
    });
    EXPECT_TRUE(finished) << others << " of " << kExtent - of_blocked;
    EXPECT_LE(of_blocked, 16) << "the part has 32 iterations";
  }
}

TEST(ThreadPoolTest, ALoopInsideALoopRunsOnItsThread) {
  const HoneRuntime runtime = hone_threads(2);
  std::atomic<int> inner = 0;
  ParallelFor(runtime, 4, 1, 2, [&](int64_t, int64_t, int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    ParallelFor(runtime, 10, 0, 2, [&](int64_t begin, int64_t end, int64_t thread) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(thread, 0);
      inner += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(inner, 40);
}

TEST(ThreadPoolTest, ManyCallersAtATime) {
  std::vector<std::thread> callers;
  for (int c = 0; c < 10; ++c) {
    callers.emplace_back([c] {
      const HoneRuntime runtime = hone_threads(1 + c % 4);
      for (int i = 0; i < 300; ++i) ExpectRight(runtime, 1 + i % 50, i % 3, runtime.threads);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPoolTest, ThreadsHelpSeveralCallers) {
  const HoneRuntime runtime = hone_threads(3);
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&runtime] {
      std::atomic<bool> helped = false;
      ParallelFor(runtime, 3, 0, 3, [&](int64_t, int64_t, int64_t thread) {
        if (thread > 0) helped = true;
        EXPECT_TRUE(Await([&] { return helped.load(); }));
      });
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPoolTest, AnIdleProgramUsesNoProcessorTime) {
  ExpectRight(hone_threads(4), 1000, 0, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(1000.0 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 15);
}

TEST(ThreadPoolTest, ThreadsThatSleepAreWoken) {
  const HoneRuntime runtime = hone_threads(2);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> arrived = 0;
    ParallelFor(runtime, 2, 0, 2, [&](int64_t begin, int64_t end, int64_t) {
      arrived += static_cast<int>(end - begin);
      EXPECT_TRUE(Await([&] { return arrived == 2; }));
    });
  }
}

#if !defined(__SANITIZE_THREAD__)  // which supports no threads in a child of a process with threads
TEST(ThreadPoolTest, AChildOfForkHasThreadsOfItsOwn) {
  const HoneRuntime runtime = hone_threads(3);
  ExpectRight(runtime, 100, 0, 3);
  const auto right_in_child = [&runtime] {
    std::atomic<int> arrived = 0;
    bool met = true;
    ParallelFor(runtime, 3, 0, 3, [&](int64_t begin, int64_t end, int64_t) {
      arrived += static_cast<int>(end - begin);
      met = Await([&] { return arrived == 3; }) && met;
    });
    return met && arrived == 3;
  };
  // From a thread outside of a loop, and from inside a loop, where it has no help.
  const auto fork_and_run = [&](bool inside) {
    const pid_t child = fork();
    if (child == 0) {
      bool right = true;
      if (inside) {
        int64_t sum = 0;
        ParallelFor(runtime, 9, 0, 3, [&](int64_t b, int64_t e, int64_t) { sum += e - b; });
        right = sum == 9;
      } else {
        right = right_in_child() && right_in_child();
      }
      _exit(right ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  };
  fork_and_run(false);
  std::atomic<bool> forked = false;
  ParallelFor(runtime, 3, 0, 3, [&](int64_t, int64_t, int64_t) {
    if (!forked.exchange(true)) fork_and_run(true);
  });
  EXPECT_TRUE(right_in_child()) << "in the parent";
}
#endif

TEST(ThreadPoolTest, UnloadingTheLibraryEndsItsThreads) {
  for (int i = 0; i < 20; ++i) {
    const int before = ThreadsOfProcess();
    void* const library = dlopen(HONE_POOL_MODULE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto threads = reinterpret_cast<HoneRuntime (*)(int32_t)>(dlsym(library, "hone_threads"));
    ASSERT_NE(threads, nullptr);
    // Unloads while the threads spin, and while they sleep.
    ExpectRight(threads(4), 100, i % 2, 4);
    EXPECT_EQ(ThreadsOfProcess(), before + 3);
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    dlclose(library);
    // The kernel may list a thread for a moment after it was joined.
    EXPECT_TRUE(Await([before] { return ThreadsOfProcess() == before; })) << ThreadsOfProcess();
  }
}

// A pool of two threads whose threads can be stopped at a place; see paused_pool.c.
class PausedPoolTest : public ::testing::Test {
 protected:
  enum { kOff, kArmed, kReached };

  PausedPoolTest() : library_(dlopen(HONE_PAUSED_POOL_MODULE, RTLD_NOW | RTLD_LOCAL)) {
    runtime_ = reinterpret_cast<HoneRuntime (*)(int32_t)>(dlsym(library_, "hone_threads"))(2);
  }
  std::atomic<int>& Place(const char* name) {
    return *static_cast<std::atomic<int>*>(dlsym(library_, name));
  }
  // Whether both threads compute an iteration of a loop. The worker then calls `then`.
  bool BothHelp(const std::function<void()>& then = [] {}) {
    std::atomic<int> arrived = 0;
    bool met = true;
    ParallelFor(runtime_, 2, 0, 2, [&](int64_t begin, int64_t end, int64_t thread) {
      arrived += static_cast<int>(end - begin);
      if (!Await([&] { return arrived == 2; })) met = false;
      if (thread == 1) then();
    });
    return met;
  }

  void* const library_;
  HoneRuntime runtime_;
};

TEST_F(PausedPoolTest, AThreadIsWokenThatSleepsWhileACallerWakesTheOthers) {
  ASSERT_TRUE(BothHelp([this] { Place("paused_sleep") = kArmed; }));
  ASSERT_TRUE(Await([this] { return Place("paused_sleep") == kReached; }));
  // The caller clears the mark of the thread between the thread's setting it and its sleep.
  Place("paused_wake") = kArmed;
  ExpectRight(runtime_, 2, 0, 2);
  EXPECT_EQ(Place("paused_wake"), kOff);
  EXPECT_TRUE(Await([this] { return Place("paused_sleep") == kOff; }));
  // The thread gets time to fall asleep; if it has not, the test is easier to pass, but not wrong.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(BothHelp());
  dlclose(library_);
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(PausedPoolTest, AThreadEndsThatHasJustLookedWhetherItMust) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    const bool right = BothHelp([this] { Place("paused_worker") = kArmed; }) &&
                       Await([this] { return Place("paused_worker") == kReached; });
    dlclose(library_);
    _exit(right ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  dlclose(library_);
}
#endif

TEST(ThreadPoolTest, TheVariableSetsTheDefault) {
  setenv("OMP_NUM_THREADS", "5", 1);
  EXPECT_EQ(hone_threads(0).threads, 5);
  setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(hone_threads(0).threads, 3);
  for (const char* const wrong : {"", "0", "many", "-4", "999999999"}) {
    setenv("OMP_NUM_THREADS", wrong, 1);
    EXPECT_EQ(hone_threads(0).threads, hone_usable_cpus()) << wrong;
  }
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(hone_threads(0).threads, hone_usable_cpus());
  EXPECT_EQ(hone_threads(7).threads, 7);
}

// Writes files below a folder that replaces /.
class CpuQuotaTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) { root_.Write(path, text); }
  double Quota() const { return hone_cpu_quota(root_.path().c_str()); }

  const hone::FakeRoot root_;
};

TEST_F(CpuQuotaTest, Version2) {
  EXPECT_EQ(Quota(), 0) << "no files";
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota(), 1.5) << "in a container";
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), 0);
  // The least of a group and of those that contain it.
  Write("proc/self/cgroup", "0::/system.slice/job.service\n");
  Write("sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
  EXPECT_EQ(Quota(), 0.5);
  Write("sys/fs/cgroup/system.slice/job.service/cpu.max", "25000 100000\n");
  EXPECT_EQ(Quota(), 0.25);
  Write("sys/fs/cgroup/system.slice/job.service/cpu.max", "300000 100000\n");
  EXPECT_EQ(Quota(), 0.5);
}

TEST_F(CpuQuotaTest, Version1) {
  Write("proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/docker/0123\n1:name=systemd:/\n0::/\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 0);
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(Quota(), 2.5) << "the container sees its own group as the outermost one";
  Write("sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_quota_us", "200000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 2);
  // A controller whose name begins alike is another one.
  Write("proc/self/cgroup", "3:cpuset:/\n");
  Write("sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000\n");
  Write("sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 0);
}

}  // namespace
