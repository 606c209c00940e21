// The server and the worker are started by hand. The worker is killed during a run and replaced;
// the run finishes, and nothing acknowledged is lost.

#include <signal.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr int kTrials = 60;

class WorkerLossTest : public ::testing::Test {
 protected:
  WorkerLossTest() : address_("unix:" + folder_ / "server.sock") {}

  std::unique_ptr<Process> StartServer() {
    auto server = std::make_unique<Process>(
        std::vector<std::string>{"hone-server", "--listen", address_, "--store",
                                 folder_ / "hone.db", "--ready-file", folder_ / "ready"});
    EXPECT_TRUE(Eventually([&] { return ReadyExists() || !server->Running(); }));
    EXPECT_TRUE(server->Running()) << server->Errors();
    return server;
  }
  bool ReadyExists() const {
    return RunProgram({"/usr/bin/test", "-e", folder_ / "ready"}).code == 0;
  }
  std::unique_ptr<Process> StartWorker(const std::string& name,
                                       std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {"hone-worker", "--server", address_, "--state-dir",
                                     folder_ / name};
    argv.insert(argv.end(), more.begin(), more.end());
    return std::make_unique<Process>(std::move(argv));
  }
  // Starts a machine that has only the agent and this program.
  std::unique_ptr<Process> StartWorkerWith(const std::string& program, const std::string& flag) {
    const std::string programs = folder_ / ("bin-" + program);
    std::filesystem::create_directories(programs);
    std::error_code there;
    std::filesystem::create_symlink(BinDir() + "/" + program, programs + "/" + program, there);
    return StartWorker(program, {"--name", "with-" + program, "--program-dir", programs, flag});
  }
  Result Hone(std::vector<std::string> words) {
    words.insert(words.begin(), {"hone", "--server", address_});
    return RunProgram(std::move(words));
  }
  // Waits until `count` workers are registered. On a busy machine this takes longer than a job
  // waits for a worker.
  bool HasWorkers(size_t count) {
    return Eventually([&] {
      const nlohmann::json list = OneLineOfJson(Hone({"workers", "list", "--json"}).output);
      return list.is_object() && list["workers"].size() >= count;
    });
  }
  int64_t Trials() {
    const nlohmann::json jobs = OneLineOfJson(Hone({"jobs", "list", "--json"}).output);
    return jobs.is_object() && !jobs["jobs"].empty() ? jobs["jobs"][0]["trials"].get<int64_t>()
                                                     : -1;
  }
  // The ids and latencies of all records. Records that clients have seen must be kept.
  std::set<std::string> Records() {
    std::set<std::string> records;
    const nlohmann::json list =
        OneLineOfJson(Hone({"records", "query", "--limit", "0", "--json"}).output);
    EXPECT_TRUE(list.is_object());
    if (!list.is_object()) return records;
    for (const auto& record : list["records"])
      records.insert(absl::StrCat(record["record"].dump(), " ", record["latency_ns"].dump()));
    return records;
  }
  std::unique_ptr<Process> StartTuning(int size = 64) {
    return std::make_unique<Process>(std::vector<std::string>{
        "hone", "--server", address_, "tune", "matmul", absl::StrCat("m=", size),
        absl::StrCat("n=", size), absl::StrCat("k=", size), "--trials", absl::StrCat(kTrials),
        "--json"});
  }
  void ExpectFinished(Process& tune) {
    EXPECT_EQ(tune.Wait(absl::Seconds(240)), 0) << tune.Errors();
    const nlohmann::json run = OneLineOfJson(tune.Output());
    ASSERT_TRUE(run.is_object()) << tune.Output();
    EXPECT_EQ(run["trials"], kTrials);
  }

  TemporaryFolder folder_;
  const std::string address_;
};

TEST_F(WorkerLossTest, RunSurvivesAKilledWorker) {
  const auto server = StartServer();
  auto worker = StartWorker("worker");
  ASSERT_TRUE(HasWorkers(1)) << worker->Errors();
  const auto tune = StartTuning();
  ASSERT_TRUE(Eventually([&] { return Trials() >= 8; }, absl::Seconds(90)))
      << tune->Errors() << worker->Errors();
  const std::set<std::string> before = Records();
  EXPECT_GE(before.size(), 8u);
  worker->Signal(SIGKILL);
  worker->Wait();
  EXPECT_TRUE(tune->Running()) << "the run ended with its worker: " << tune->Errors();
  worker = StartWorker("worker");
  ExpectFinished(*tune);
  std::set<std::string> after = Records();
  EXPECT_THAT(after, IsSupersetOf(before));
}

TEST_F(WorkerLossTest, BuildOnlyMachineAndBoardFinishARun) {
  const auto server = StartServer();
  auto builder = StartWorkerWith("hone-builder", "--build-only");
  auto board = StartWorkerWith("hone-runner", "--run-only");
  ASSERT_TRUE(HasWorkers(2)) << builder->Errors() << board->Errors();
  // Too large for an interpreter: the board gets the reference kernel from the builder.
  const auto tune = StartTuning(256);
  ASSERT_TRUE(Eventually([&] { return Trials() >= 8; }, absl::Seconds(120)))
      << tune->Errors() << builder->Errors() << board->Errors();
  const nlohmann::json list = OneLineOfJson(Hone({"workers", "list", "--json"}).output);
  ASSERT_EQ(list["workers"].size(), 2u);
  EXPECT_EQ(list["workers"][0]["can_run"], false) << list;
  EXPECT_EQ(list["workers"][1]["can_build"], false) << list;
  // Either machine may be killed at any moment.
  builder->Signal(SIGKILL);
  builder->Wait();
  builder = StartWorkerWith("hone-builder", "--build-only");
  ASSERT_TRUE(Eventually([&] { return Trials() >= 16; }, absl::Seconds(120))) << tune->Errors();
  board->Signal(SIGKILL);
  board->Wait();
  board = StartWorkerWith("hone-runner", "--run-only");
  ExpectFinished(*tune);
  // The builder's versions are in the records, although the board timed them.
  const nlohmann::json records =
      OneLineOfJson(Hone({"records", "query", "--limit", "0", "--json"}).output);
  for (const nlohmann::json& record : records["records"]) {
    EXPECT_GT(record["environment"]["codegen_version"], 0) << record;
    EXPECT_NE(record["environment"]["compiler"], "") << record;
  }
  Transcript("worker_loss", {"hone", "--server", address_}).Run({"revalidate", "--older-codegen"});
}

TEST_F(WorkerLossTest, ExplainsWhyItWaits) {
  const auto server = StartServer();
  const auto builder = StartWorkerWith("hone-builder", "--build-only");
  const auto board = StartWorkerWith("hone-runner", "--run-only");
  ASSERT_TRUE(HasWorkers(2)) << builder->Errors() << board->Errors();
  board->Signal(SIGKILL);
  board->Wait();
  const auto tune = StartTuning();
  const auto says = [&](const char* text) {
    return Eventually([&] { return absl::StrContains(tune->Errors(), text); }, absl::Seconds(90));
  };
  EXPECT_TRUE(says("with-hone-runner was last seen at")) << tune->Errors();
  EXPECT_TRUE(says("start hone-worker on the machine of with-hone-runner again"));
  server->Signal(SIGKILL);
  EXPECT_TRUE(says("the server has not answered since")) << tune->Errors();
  // It waits for ten minutes.
  EXPECT_TRUE(tune->Running());
  tune->Signal(SIGINT);
  EXPECT_EQ(tune->Wait(absl::Seconds(60)), 128 + SIGINT) << tune->Errors();
  EXPECT_TRUE(says("hone jobs watch 1"));
  EXPECT_THAT(tune->Errors(), Not(HasSubstr("why candidates failed")));
}

TEST_F(WorkerLossTest, CtrlCWithoutAServerNamesTheJob) {
  const auto server = StartServer();
  const auto worker = StartWorker("worker");
  ASSERT_TRUE(HasWorkers(1)) << worker->Errors();
  const auto tune = StartTuning();
  ASSERT_TRUE(Eventually([&] { return Trials() >= 1; }, absl::Seconds(90))) << tune->Errors();
  server->Signal(SIGKILL);
  server->Wait();
  tune->Signal(SIGINT);
  EXPECT_EQ(tune->Wait(absl::Seconds(60)), 128 + SIGINT) << tune->Errors();
  EXPECT_THAT(tune->Errors(),
              ContainsRegex("job 1 could not be cancelled.*hone jobs watch 1 --server " + address_ +
                            " follows it"));
  EXPECT_THAT(tune->Errors(), Not(HasSubstr("confirming the finalists")));
}

TEST_F(WorkerLossTest, CtrlCEndsTheWaitForAWorker) {
  const auto server = StartServer();
  Process detached(std::vector<std::string>{"hone", "--server", address_, "tune", "relu", "m=4",
                                            "n=4", "--detach", "--target", "arm-neon"});
  const auto tune = StartTuning();
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(tune->Errors(), "creating the job"); }))
      << tune->Errors();
  tune->Signal(SIGINT);
  EXPECT_EQ(tune->Wait(absl::Seconds(10)), 128 + SIGINT) << tune->Errors();
  EXPECT_THAT(tune->Errors(), ContainsRegex("at most 15 s.*interrupted before the server had "
                                            "created the job"));
  EXPECT_THAT(tune->Errors(), Not(HasSubstr("target native")));
  EXPECT_TRUE(OneLineOfJson(tune->Output()).contains("error")) << tune->Output();
  EXPECT_EQ(Trials(), -1) << "there is a job";
  EXPECT_EQ(detached.Wait(absl::Seconds(60)), 1) << detached.Errors();
  EXPECT_THAT(detached.Errors(), ContainsRegex("if no worker of target .*at most 15 s.*"
                                               "no registered worker runs target "));
}

TEST_F(WorkerLossTest, RunSurvivesAKilledServer) {
  auto server = StartServer();
  const auto worker = StartWorker("worker");
  ASSERT_TRUE(HasWorkers(1)) << worker->Errors();
  const auto tune = StartTuning();
  ASSERT_TRUE(Eventually([&] { return Trials() >= 8; }, absl::Seconds(90)))
      << tune->Errors() << worker->Errors();
  const std::set<std::string> before = Records();
  server->Signal(SIGKILL);
  server->Wait();
  RunProgram({"/bin/rm", "-f", folder_ / "ready"});
  server = StartServer();
  ExpectFinished(*tune);
  EXPECT_THAT(Records(), IsSupersetOf(before));
}

}  // namespace
}  // namespace hone::integration
