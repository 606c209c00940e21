#include "tests/fault/fault_schedule.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::fault {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Not;
using ::testing::SizeIs;

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
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const StoreKind store = seed % 2 == 0 ? StoreKind::kSqlite : StoreKind::kPostgres;
    const std::vector<FaultKind> kinds = FaultsOf(store);
    const ScheduleOptions options{.seed = seed,
                                  .store = store,
                                  .faults = static_cast<int>(kinds.size()),
                                  .length = absl::Seconds(10)};
    std::set<FaultKind> seen;
    absl::Duration before;
    for (const Fault& fault : MakeSchedule(options)) {
      EXPECT_GE(fault.at, before);
      EXPECT_LT(fault.at, options.length);
      EXPECT_LE(fault.lasts, InfoOf(fault.kind).usual);
      before = fault.at;
      seen.insert(fault.kind);
    }
    EXPECT_EQ(seen, std::set<FaultKind>(kinds.begin(), kinds.end())) << "seed " << seed;
  }
}

TEST(FaultScheduleTest, EachStoreHasItsFaults) {
  EXPECT_THAT(FaultsOf(StoreKind::kSqlite),
              AllOf(Contains(FaultKind::kRestoreBackup), Not(Contains(FaultKind::kPartition))));
  EXPECT_THAT(FaultsOf(StoreKind::kPostgres),
              AllOf(Contains(FaultKind::kPartition), Not(Contains(FaultKind::kRestoreBackup))));
  EXPECT_THAT(FaultsOf(StoreKind::kSqlite), SizeIs(23));
  EXPECT_THAT(FaultsOf(StoreKind::kPostgres), SizeIs(27));
}

TEST(FaultScheduleTest, AScheduleMayBeOfSomeKinds) {
  const std::vector<FaultKind> kinds = {FaultKind::kKillLeader, FaultKind::kPartition};
  for (const Fault& fault :
       MakeSchedule({.store = StoreKind::kPostgres, .kinds = kinds, .faults = 10})) {
    EXPECT_THAT(kinds, Contains(fault.kind));
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
