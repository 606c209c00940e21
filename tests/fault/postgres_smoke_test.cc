// A leader and a standby on a PostgreSQL database: the leader is killed, the database is killed,
// and the leader is cut off from it. Then all invariants are checked. The test takes less than a
// minute; tests/fault/run.sh --long has all faults.

#include "gtest/gtest.h"
#include "tests/fault/chaos.h"
#include "tests/fault/report.h"
#include "tests/integration/process.h"
#include "tests/server/store/postgres_server.h"
#include "tests/status.h"

namespace hone::fault {
namespace {

TEST(PostgresSmokeTest, NothingAcknowledgedIsLostAndEveryJobEnds) {
  if (store::PostgresPrograms().empty()) {
    GTEST_SKIP() << "PostgreSQL is not installed: install postgresql";
  }
  const TemporaryFolder folder;
  const ChaosOptions options{
      .schedule = {.seed = 1,
                   .store = StoreKind::kPostgres,
                   .kinds = {FaultKind::kKillLeader, FaultKind::kKillDatabase,
                             FaultKind::kPartition},
                   .faults = 3,
                   .length = absl::Seconds(18)},
      .last_wish = absl::Seconds(10),
      .settle = absl::Minutes(3),  // only a stuck job needs that long
      .trials = 12};
  HONE_ASSERT_OK_AND_ASSIGN(const auto report, RunChaos(options, folder.path()));
  EXPECT_TRUE(report.holds()) << ToMarkdown(report);
  EXPECT_EQ(report.struck(), 3) << ToMarkdown(report);
  EXPECT_GE(report.jobs_done, 2);
}

}  // namespace
}  // namespace hone::fault
