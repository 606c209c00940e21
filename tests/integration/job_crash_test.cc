// A server that is killed twice while it makes the design spaces of the same job: the third server
// does not resume that job.

#include <signal.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "tests/integration/hone_home.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;

// Three consecutive products have the maximum number of design spaces, which take a while to make.
constexpr char kSlowWorkload[] =
    "workload chain\n"
    "input X: f32[128, 256]\n"
    "input P: f32[256, 512]\n"
    "input Q: f32[512, 512]\n"
    "input R: f32[512, 512]\n"
    "A[i: 128, j: 512] = sum(k: 256) X[i, k] * P[k, j]\n"
    "B[i: 128, j: 512] = sum(k: 512) A[i, k] * Q[k, j]\n"
    "output C[i: 128, j: 512] = sum(k: 512) B[i, k] * R[k, j]\n";

class JobCrashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(WriteFileAtomically(folder_ / "slow.hone", kSlowWorkload), IsOk());
    StartServer();
    worker_ = std::make_unique<Process>(std::vector<std::string>{
        "hone-worker", "--server", address_, "--state-dir", folder_ / "worker"});
    ASSERT_TRUE(Eventually([&] {
      const nlohmann::json list = OneLineOfJson(Hone({"workers", "list", "--json"}).output);
      return list.is_object() && !list["workers"].empty();
    })) << worker_->Errors();
  }
  void StartServer() {
    server_ = std::make_unique<Process>(std::vector<std::string>{
        "hone-server", "--listen", address_, "--store", folder_ / "hone.db"});
    ASSERT_TRUE(Eventually(
        [&] { return absl::StrContains(server_->Errors(), "serving on") || !server_->Running(); }));
    ASSERT_TRUE(server_->Running()) << server_->Errors();
  }
  Result Hone(std::vector<std::string> words) {
    words.insert(words.begin(), {"hone", "--server", address_});
    return RunProgram(std::move(words));
  }
  std::unique_ptr<Process> Tune(std::vector<std::string> workload) {
    std::vector<std::string> words = {"hone", "--server", address_, "tune"};
    words.insert(words.end(), workload.begin(), workload.end());
    words.insert(words.end(), {"--trials", "4"});
    return std::make_unique<Process>(std::move(words));
  }
  // The newest job as reported by the server.
  nlohmann::json NewestJob() {
    const nlohmann::json list = OneLineOfJson(Hone({"jobs", "list", "--json"}).output);
    return list.is_object() && !list["jobs"].empty() ? list["jobs"][0] : nlohmann::json::object();
  }
  // The risky step of the job in the store, or "" if there is none.
  std::string RiskyStep() const {
    sqlite3* raw = nullptr;
    sqlite3_open_v2((folder_ / "hone.db").c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> store(raw, sqlite3_close);
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(raw, "SELECT summary FROM job", -1, &statement, nullptr);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(statement, sqlite3_finalize);
    if (statement == nullptr || sqlite3_step(statement) != SQLITE_ROW) return "";
    const auto job =
        job::DecodeSnapshot({static_cast<const char*>(sqlite3_column_blob(statement, 0)),
                             static_cast<size_t>(sqlite3_column_bytes(statement, 0))});
    if (!job.ok() || !job->risky_step.has_value()) return "";
    return absl::StrCat(job->risky_step->server, " ", job->risky_step->name);
  }
  // Kills the server while the server itself makes the design spaces of the job.
  void CrashInAStep() {
    const std::string run = absl::StrCat("/", server_->pid(), "/");
    ASSERT_TRUE(Eventually([&] { return absl::StrContains(RiskyStep(), run); }))
        << server_->Errors();
    server_->Signal(SIGSEGV);
    EXPECT_EQ(server_->Wait(), 128 + SIGSEGV);
    EXPECT_THAT(RiskyStep(), ContainsRegex(run + ".*making the design spaces"));
  }

  TemporaryFolder folder_;
  const std::string address_ = "unix:" + folder_ / "server.sock";
  std::unique_ptr<Process> server_, worker_;
};

TEST_F(JobCrashTest, JobThatCrashedTheServerTwiceIsNotResumed) {
  const std::unique_ptr<Process> tune = Tune({folder_ / "slow.hone"});
  CrashInAStep();
  StartServer();
  CrashInAStep();
  StartServer();
  ASSERT_TRUE(Eventually([&] { return NewestJob().value("state", "") == "failed"; }))
      << NewestJob() << server_->Errors();
  EXPECT_THAT(NewestJob().value("error", ""),
              ContainsRegex("ended abnormally 2 times.*hone jobs resume 1"));
  const std::unique_ptr<Process> next = Tune({"matmul", "m=16", "n=16", "k=16"});
  EXPECT_EQ(next->Wait(), 0) << next->Errors();
  EXPECT_TRUE(server_->Running());
}

}  // namespace
}  // namespace hone::integration
