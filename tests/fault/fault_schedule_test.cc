#include "tests/fault/fault_schedule.h"

#include <set>

#include "gtest/gtest.h"

namespace hone::fault {
namespace {

TEST(FaultScheduleTest, DependsOnTheSeedOnly) {
  const ScheduleOptions options{.seed = 7, .faults = 100};
  EXPECT_EQ(MakeSchedule(options), MakeSchedule(options));
  EXPECT_NE(MakeSchedule(options), MakeSchedule({.seed = 8, .faults = 100}));
}

TEST(FaultScheduleTest, TheTableIsInTheOrderOfTheKinds) {
  for (size_t i = 0; i < AllFaults().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(AllFaults()[i].kind), i);
  }
}

TEST(FaultScheduleTest, FaultsAreInOrderOfTime) {
  const int kinds = static_cast<int>(AllFaults().size());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ScheduleOptions options{.seed = seed, .faults = kinds, .length = absl::Seconds(10)};
    std::set<FaultKind> seen;
    absl::Duration before;
    for (const Fault& fault : MakeSchedule(options)) {
      EXPECT_GE(fault.at, before);
      EXPECT_LT(fault.at, options.length);
      EXPECT_LE(fault.lasts, InfoOf(fault.kind).usual);
      before = fault.at;
      seen.insert(fault.kind);
    }
    EXPECT_EQ(static_cast<int>(seen.size()), kinds) << "seed " << seed;
  }
}

TEST(FaultScheduleTest, LongRunsHaveOutagesBeyondTheTimeouts) {
  absl::Duration longest;
  for (const Fault& fault : MakeSchedule({.seed = 1, .faults = 300, .long_faults = true})) {
    longest = std::max(longest, fault.lasts);
  }
  EXPECT_GT(longest, absl::Seconds(20));
}

}  // namespace
}  // namespace hone::fault
