// A chaos run of about a minute with a fixed seed: each kind of fault occurs once, and then
// all invariants are checked. tests/fault/run.sh --long runs longer.

#include "gtest/gtest.h"
#include "tests/fault/chaos.h"
#include "tests/fault/report.h"
#include "tests/integration/process.h"
#include "tests/status.h"

namespace hone::fault {
namespace {

TEST(ChaosSmokeTest, NothingAcknowledgedIsLostAndEveryJobEnds) {
  const TemporaryFolder folder;
  const ChaosOptions options{
      .schedule = {.seed = 1,
                   .faults = static_cast<int>(FaultsOf(StoreKind::kSqlite).size()),
                   .length = absl::Seconds(45)},
      .last_wish = absl::Seconds(20),
      .settle = absl::Minutes(3),  // only a stuck job needs that long
      .trials = 12};
  HONE_ASSERT_OK_AND_ASSIGN(const auto report, RunChaos(options, folder.path()));
  EXPECT_TRUE(report.holds()) << ToMarkdown(report);
  EXPECT_GE(report.struck(), 15) << ToMarkdown(report);
  EXPECT_GE(report.jobs_done, 2);
}

}  // namespace
}  // namespace hone::fault
