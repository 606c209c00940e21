#include "worker/runner/peak.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "common/target/thread_pool.h"
#include "tests/status.h"
#include "worker/runner/limits.h"
#include "worker/runner/timing.h"

namespace hone::runner {
namespace {

TEST(PeakTest, EveryWidthOfThisMachineHasAPeak) {
  const Peak peak = MeasurePeak(2);
  ASSERT_EQ(peak.widths.size(), FmaWidths().size());
  for (const Peak::Width& width : peak.widths) {
    EXPECT_GT(width.gflops_one_core, 0.1) << width.vector_bits;
    EXPECT_LT(width.gflops_one_core, 1000) << width.vector_bits;  // the loop was not optimized away
    EXPECT_GT(width.gflops_all_cores, 0.1) << width.vector_bits;
  }
  EXPECT_GT(peak.read_gbps_one_core, 0.1);
  EXPECT_LT(peak.read_gbps_one_core, 1000);
  EXPECT_GE(peak.gflops_one_core(), peak.widths.front().gflops_one_core);
  EXPECT_THAT(peak.ToJson(), ::testing::HasSubstr("\"vector_bits\": 128"));
}

TEST(ReferenceLoopsTest, TheStreamReadsEveryWord) {
  alignas(64) uint64_t words[64] = {};
  for (uint64_t& word : words) word = 3;
  EXPECT_EQ(RunStream(words, sizeof words), 64u * 3);
}

TEST(ReferenceLoopsTest, EvictedDataIsUnchanged) {
  alignas(64) uint64_t words[64] = {};
  for (uint64_t& word : words) word = 5;
  Evict(words, sizeof words);
  EXPECT_EQ(RunStream(words, sizeof words), 64u * 5);
}

// What is in the caches before a sample depends on the kernel, so the sample must not.
TEST(ProbeTest, AKernelThatFillsTheCachesIsNoDisturbance) {
  const HoneRuntime runtime = hone_threads(KernelThreads());
  HONE_ASSERT_OK_AND_ASSIGN(const auto probe, CreateProbe(0, runtime));
  std::vector<char> large(64 << 20);
  std::vector<double> cold, warm;
  for (int i = 0; i < 15; ++i) {
    warm.push_back(probe->Sample());
    std::memset(large.data(), i, large.size());
    cold.push_back(probe->Sample());
  }
  // On a machine that computes something else, both are large.
  EXPECT_LT(*std::ranges::min_element(cold), 1.5 * *std::ranges::min_element(warm));
}

// Two threads on one core: each waits for about half of the time.
TEST(WaitTest, AThreadThatSharesItsCoreWaits) {
  const bool apart = fork() == 0;  // pinned threads cannot be unpinned
  if (apart) {
    SetUpThreads();
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(sched_getcpu(), &own);
    sched_setaffinity(0, sizeof own, &own);
    std::atomic<bool> ended = false;
    std::thread rival([&] {  // inherits the core
      while (!ended) {
      }
    });
    const double begin = NowNs();
    const std::vector<double> waited_ns = KernelThreadsWaitedNs();
    while (NowNs() - begin < 200e6) {
    }
    const double share = LongestWaitNs(waited_ns, KernelThreadsWaitedNs()) / (NowNs() - begin);
    ended = true;
    rival.join();
    _exit(share > 0.1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_GT(wait(&status), 0);
  EXPECT_EQ(status, 0);
}

TEST(ProbeTest, SamplesAreRatiosToTheBest) {
  const HoneRuntime runtime = hone_threads(KernelThreads());
  HONE_ASSERT_OK_AND_ASSIGN(const auto probe, CreateProbe(0, runtime));
  for (int i = 0; i < 5; ++i) EXPECT_GE(probe->Sample(), 1.0);
  EXPECT_GE(probe->Drift(), 1.0);  // it is relative to the probe's own samples
}

TEST(ProbeTest, DriftIsAgainstThePeakAtRegistration) {
  const double slow_gflops = 1e-3 * MeasurePeak(KernelThreads()).gflops_all_cores();
  const HoneRuntime runtime = hone_threads(KernelThreads());
  HONE_ASSERT_OK_AND_ASSIGN(const auto probe, CreateProbe(slow_gflops, runtime));
  probe->Sample();
  EXPECT_GT(probe->Drift(), 0);
  EXPECT_LT(probe->Drift(), 0.1);  // about a thousand times faster than the stated peak
}

}  // namespace
}  // namespace hone::runner
