// Single faults of the machine: its clock is set, its disk is full.

#include <signal.h>
#include <sys/resource.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fault/cluster.h"
#include "tests/fault/observer.h"
#include "tests/status.h"

namespace hone::fault {
namespace {

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HONE_ASSERT_OK_AND_ASSIGN(cluster_, Cluster::Start(folder_.path(), &ledger_));
    direct_ = OpenDirect(cluster_->server_address()).value();
    ASSERT_TRUE(integration::Eventually([&] { return direct_->ListWorkers().ok(); }));
  }
  std::unique_ptr<integration::Process> Tune(int trials) {
    return std::make_unique<integration::Process>(std::vector<std::string>{
        "hone", "--server", cluster_->client_address(), "tune", "matmul", "m=32", "n=32", "k=32",
        "--trials", absl::StrCat(trials), "--json"});
  }
  bool HasTrials(int64_t trials) {
    return integration::Eventually([&] {
      const auto jobs = direct_->ListJobs(1);
      return jobs.ok() && !jobs->empty() && jobs->front().trials() >= trials;
    });
  }

  TemporaryFolder folder_;
  Ledger ledger_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<client::Connection> direct_;
};

TEST_F(MachineTest, JobSurvivesClockChanges) {
  const auto tune = Tune(40);
  ASSERT_TRUE(HasTrials(4)) << tune->Errors();
  int64_t trials = 8;
  for (const absl::Duration shift : {-absl::Hours(1), absl::Hours(24), -absl::Hours(24)}) {
    Cluster::ShiftClock(cluster_->server(), shift);
    for (size_t i = 0; i < cluster_->workers(); ++i) {
      Cluster::ShiftClock(cluster_->worker(i), shift);
    }
    EXPECT_TRUE(HasTrials(trials)) << "nothing was measured after the clock moved by " << shift;
    trials += 8;
  }
  EXPECT_EQ(tune->Wait(), 0) << tune->Errors();
  HONE_ASSERT_OK_AND_ASSIGN(const auto workers, direct_->ListWorkers());
  for (const v1::WorkerInfo& worker : workers) {
    EXPECT_TRUE(worker.connected()) << worker.id() << ": " << worker.last_error();
  }
}

TEST_F(MachineTest, ServerSurvivesAFileSizeLimit) {
  const auto limit = [&](rlim_t bytes) {
    rlimit now;
    prlimit(cluster_->server().process->pid(), RLIMIT_FSIZE, nullptr, &now);
    now.rlim_cur = bytes;
    prlimit(cluster_->server().process->pid(), RLIMIT_FSIZE, &now, nullptr);
  };
  limit(4096);
  const auto refused = Tune(8);
  EXPECT_NE(refused->Wait(), 0);
  EXPECT_NE(refused->Errors().find("free space"), std::string::npos) << refused->Errors();
  EXPECT_TRUE(cluster_->server().process->Running()) << cluster_->server().process->Errors();
  limit(RLIM_INFINITY);
  const auto tune = Tune(8);
  EXPECT_EQ(tune->Wait(), 0) << tune->Errors();
  integration::Process& server = *cluster_->server().process;
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << "the writes that failed were reported at that time\n"
                              << server.Errors();
}

}  // namespace
}  // namespace hone::fault
