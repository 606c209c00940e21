#include "worker/agent/spool.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::agent {
namespace {

class SpoolTest : public ::testing::Test {
 protected:
  void SetUp() override { spool_ = Spool::Open(folder_ / "spool").value(); }
  static v1::FinishedLease Finished(const std::string& lease_id, double latency_ns) {
    v1::FinishedLease finished;
    finished.set_lease_id(lease_id);
    finished.mutable_result()->set_outcome(v1::OUTCOME_OK);
    finished.mutable_result()->set_latency_ns(latency_ns);
    return finished;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Spool> spool_;
};

TEST_F(SpoolTest, ResultsSurviveRestartUntilRemoved) {
  ASSERT_THAT(spool_->Put(Finished("instance-1", 10)), IsOk());
  ASSERT_THAT(spool_->Put(Finished("../../evil", 20)), IsOk());
  spool_->Remove("instance-1");
  spool_->Remove("never there");
  const auto loaded = Spool::Open(folder_ / "spool").value()->Load();
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(loaded[0].lease_id(), "../../evil");
  EXPECT_EQ(loaded[0].result().latency_ns(), 20);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "evil"));
}

TEST_F(SpoolTest, DamagedFilesAreRemoved) {
  ASSERT_THAT(spool_->Put(Finished("a", 1)), IsOk());
  std::ofstream(folder_ / "spool/garbage") << "\xff\xff\xff";
  EXPECT_EQ(spool_->Load().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "spool/garbage"));
}

}  // namespace
}  // namespace hone::agent
