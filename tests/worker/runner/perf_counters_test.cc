#include "worker/runner/perf_counters.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::runner {
namespace {

using ::testing::HasSubstr;

const record::Counter* FindCounter(const std::vector<record::Counter>& counters,
                                   const std::string& name) {
  const auto found = std::ranges::find(counters, name, &record::Counter::name);
  return found == counters.end() ? nullptr : &*found;
}

// Makes the system provide this many pages.
void Touch(int pages) {
  constexpr size_t kPage = 4096;
  void* const memory =
      mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, pages * kPage, MADV_NOHUGEPAGE);
  for (int i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[i * kPage] = 1;
  munmap(memory, pages * kPage);
}

TEST(PerfCountersTest, EachKindOfProcessorHasItsEvents) {
  const auto names = [](const Processor& processor) {
    std::set<std::string> all;
    for (const PerfEvent& event : HardwareEvents(processor)) all.insert(event.counter);
    return all;
  };
  using Vendor = Processor::Vendor;
  const std::set<std::string> common = {record::kCycles, record::kInstructions,
                                        record::kBranchMisses, record::kL1dMisses,
                                        record::kLlcMisses};
  EXPECT_EQ(names({.vendor = Vendor::kOther}), common);
  std::set<std::string> more = common;
  more.insert(record::kL2Misses);
  EXPECT_EQ(names({.vendor = Vendor::kArm}), more);
  EXPECT_EQ(names({.vendor = Vendor::kIntel, .family = 6}), more) << "before Broadwell";
  more.insert(record::kFlops);
  EXPECT_EQ(names({.vendor = Vendor::kAmd, .family = 0x1a}), more);
  EXPECT_EQ(names({.vendor = Vendor::kIntel, .family = 6, .counts_flops = true}), more);
  // Wide instructions do more operations.
  double lanes = 0;
  for (const PerfEvent& event :
       HardwareEvents({.vendor = Vendor::kIntel, .family = 6, .counts_flops = true})) {
    if (event.counter == record::kFlops) lanes += event.weight;
  }
  EXPECT_EQ(lanes, 1 + 2 + 4 + 8 + 16);
}

TEST(PerfCountersTest, CountsInTurnsAreScaled) {
  EXPECT_EQ(ScaledCount(1000, 20, 20), 1000);
  EXPECT_EQ(ScaledCount(1000, 20, 5), 4000) << "it counted for a quarter of the time";
  EXPECT_LT(ScaledCount(0, 20, 0), 0) << "it never counted";
}

TEST(PerfCountersTest, RefusalsAreExplained) {
  EXPECT_THAT(WhyRefused(EACCES, "4"), HasSubstr("sysctl kernel.perf_event_paranoid=2 (now 4)"));
  EXPECT_THAT(WhyRefused(EPERM, "1"), HasSubstr("containers"));
  EXPECT_THAT(WhyRefused(ENOENT, "2"), HasSubstr("virtual machines"));
  EXPECT_THAT(WhyRefused(ENOSYS, ""), HasSubstr("no performance counters"));
}

TEST(PerfCountersTest, FaultsSwitchesAndTimeAreAlwaysCounted) {
  PerfCounters counters({});
  counters.Begin();
  Touch(100);
  const std::vector<record::Counter> found = counters.End();
  const record::Counter* const faults = FindCounter(found, record::kPageFaults);
  ASSERT_NE(faults, nullptr);
  EXPECT_GE(faults->value, 100);
  EXPECT_LT(faults->value, 1000);
  EXPECT_GT(FindCounter(found, record::kProcessorNs)->value, 0);
  EXPECT_NE(FindCounter(found, record::kContextSwitches), nullptr);
}

// Events of the system stand for those of the processor, which a virtual machine may not have.
TEST(PerfCountersTest, EventsCountAllThreadsBetweenBeginAndEnd) {
  PerfCounters counters({{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1, 0},
                         {"twice", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 2, 0},
                         {"none", PERF_TYPE_HW_CACHE, 0xffffff, 1, 1}});
  Touch(1000);  // before it counts
  counters.Begin();
  std::thread([] { Touch(100); }).join();
  Touch(50);
  const std::vector<record::Counter> found = counters.End();
  Touch(1000);  // after it has counted
  const record::Counter* const none = FindCounter(found, "none");
  ASSERT_NE(none, nullptr);
  EXPECT_NE(none->missing, "") << "no machine has this event";
  EXPECT_EQ(none->value, 0);
  const record::Counter* const faults = FindCounter(found, "faults");
  ASSERT_NE(faults, nullptr);
  if (!faults->missing.empty()) GTEST_SKIP() << faults->missing;
  EXPECT_GE(faults->value, 150);
  EXPECT_LT(faults->value, 500);
  EXPECT_EQ(FindCounter(found, "twice")->value, 2 * faults->value);
  counters.Begin();
  EXPECT_LT(FindCounter(counters.End(), "faults")->value, 100) << "it counts from Begin";
}

}  // namespace
}  // namespace hone::runner
