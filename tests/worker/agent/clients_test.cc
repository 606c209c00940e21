// The agent's clients of its child processes. Each kind of failure of a child has its outcome, and
// the next request is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/ir/workload_parser.h"
#include "common/record/proto_convert.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "tests/worker/agent/scripted_child.h"
#include "worker/agent/builder_client.h"
#include "worker/agent/runner_client.h"

namespace hone::agent {
namespace {

using record::MeasureResult;
using record::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kMatmul =
    "workload matmul\n"
    "input A: f32[64, 32]\n"
    "input B: f32[32, 48]\n"
    "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n";

std::string AnswerOf(Outcome outcome) {
  v1::RunResponse response;
  *response.mutable_result() =
      record::ToProto(MeasureResult{.outcome = outcome, .detail = "scripted"});
  return response.SerializeAsString();
}

class ClientsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    artifacts_ = *BoundedDir::Open(folder_ / "artifacts", 64 << 20);
  }

  record::BuildResponse Build(const std::string& space, bool reference = false) {
    return builder_.Build(
        {.workload = std::string(kMatmul), .space = space, .reference = reference}, *artifacts_);
  }
  record::RunRequest RunRequest(const std::string& space) {
    const record::BuildResponse built = Build(space);
    EXPECT_EQ(built.outcome, Outcome::kOk) << built.detail;
    record::RunRequest request;
    request.workload = std::string(kMatmul);
    request.workload_digest = ir::ParseWorkload(kMatmul)->StructuralDigest().ToHex();
    request.artifact_path = artifacts_->PathOf(built.artifact_digest);
    request.reference_path = artifacts_->PathOf(Build("", true).artifact_digest);
    request.reference_data = folder_ / "reference";
    request.time_limit_ms = 20000;
    return request;
  }
  std::vector<Outcome> Run(const std::vector<record::RunRequest>& requests) {
    RunnerClient runner({.command = {absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-runner"), "--lock",
                                     folder_ / "lock", "--write", folder_.path()}});
    std::vector<Outcome> outcomes;
    size_t started = 0;
    runner.Run(
        requests, [](size_t) { return true; }, [&](size_t i) { EXPECT_EQ(i, started++); },
        [&](size_t i, const MeasureResult& result) {
          EXPECT_EQ(i, outcomes.size());
          EXPECT_EQ(started, i + 1);
          outcomes.push_back(result.outcome);
          details_.push_back(result.detail);
        });
    return outcomes;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<BoundedDir> artifacts_;
  BuilderClient builder_{{.command = {FAKE_BUILDER},
                          .output_parent = folder_ / "outputs",
                          .cpu_limit = absl::Milliseconds(200)}};
  std::vector<std::string> details_;
};

TEST_F(ClientsTest, FailedBuilderIsReportedAndReplaced) {
  struct Case {
    const char* space;
    Outcome outcome;
    const char* detail;
  };
  for (const Case& c : {Case{"good", Outcome::kOk, ""},
                        Case{"abort", Outcome::kCompileError, "LLVM ERROR: out of registers"},
                        Case{"exit", Outcome::kCompileError, "exit status 7"},
                        Case{"endless", Outcome::kCompileTimeout, "0.2 s of processor time"},
                        Case{"memory", Outcome::kOutOfMemory, "SIGKILL"},
                        Case{"nonsense", Outcome::kInvalid, "no kernel nonsense"},
                        Case{"good", Outcome::kOk, ""}}) {
    const record::BuildResponse response = Build(c.space);
    EXPECT_EQ(record::OutcomeName(response.outcome), record::OutcomeName(c.outcome)) << c.space;
    EXPECT_THAT(response.detail, HasSubstr(c.detail));
  }
}

TEST_F(ClientsTest, OnlyOneArtifactIsTakenFromABuilder) {
  const auto names_in = [](const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_directory()) names.push_back(entry.path().filename());
    }
    return names;
  };
  for (const char* const spoiled : {"second file", "symbolic link", "hard link", "other content"}) {
    const record::BuildResponse response = Build(spoiled);
    EXPECT_EQ(record::OutcomeName(response.outcome), "compile_error") << spoiled;
    EXPECT_THAT(response.detail, HasSubstr("the builder's artifact is refused")) << spoiled;
    EXPECT_TRUE(names_in(artifacts_->path()).empty()) << spoiled;
  }
  const record::BuildResponse good = Build("good");
  EXPECT_EQ(good.outcome, Outcome::kOk) << good.detail;
  EXPECT_THAT(names_in(artifacts_->path()), ElementsAre(good.artifact_digest));
  EXPECT_THAT(names_in(folder_ / "outputs"),
              ::testing::Not(::testing::Contains(good.artifact_digest)));
}

TEST_F(ClientsTest, ABuilderThatOnlyWaitsEndsByTheWallClock) {
  BuilderClient sleeper({.command = {"/bin/sh", "-c", "sleep 1000"},
                         .output_parent = folder_ / "outputs",
                         .wall_limit = absl::Milliseconds(50)});
  EXPECT_EQ(sleeper.Build({}, *artifacts_).outcome, Outcome::kDeviceLost)
      << "the candidate is not at fault";
}

TEST_F(ClientsTest, MissingProgramsAreDeviceLost) {
  BuilderClient builder({.command = {"/no/such/builder"}, .output_parent = folder_ / "outputs"});
  EXPECT_EQ(builder.Build({}, *artifacts_).outcome, Outcome::kDeviceLost);
  RunnerClient runner({.command = {"/no/such/runner"}});
  const MeasureResult result = runner.MakeReference({}, folder_.path(), absl::Seconds(1));
  EXPECT_EQ(result.outcome, Outcome::kDeviceLost);
  EXPECT_THAT(result.detail, HasSubstr("/no/such/runner"));
}

TEST_F(ClientsTest, BatchContinuesAfterACrash) {
  EXPECT_EQ(Run({RunRequest("good"), RunRequest("crash"), RunRequest("good"), RunRequest("wrong")}),
            (std::vector{Outcome::kOk, Outcome::kCrash, Outcome::kOk, Outcome::kWrongOutput}));
  EXPECT_THAT(details_[1], HasSubstr("SIGSEGV"));
}

TEST_F(ClientsTest, BatchContinuesAfterAHang) {
  record::RunRequest hang = RunRequest("hang");
  hang.time_limit_ms = 100;
  EXPECT_EQ(Run({hang, RunRequest("good"), RunRequest("huge_workspace")}),
            (std::vector{Outcome::kRunTimeout, Outcome::kOk, Outcome::kOutOfMemory}));
}

// The runner's own deadline is a signal. If a kernel blocks signals, the process that started the
// runner kills it.
TEST_F(ClientsTest, AKernelThatBlocksEverySignalIsKilledFromOutside) {
  EXPECT_EQ(Run({RunRequest("good")}), std::vector{Outcome::kOk});  // makes the reference
  RunnerClient runner({.command = {absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-runner"), "--lock",
                                   folder_ / "lock", "--write", folder_.path()}});
  record::RunRequest deaf = RunRequest("deaf");
  deaf.time_limit_ms = 100;
  std::filesystem::create_directory(folder_ / "made");
  const MeasureResult killed = runner.MakeReference(deaf, folder_ / "made", absl::Seconds(3));
  EXPECT_EQ(killed.outcome, Outcome::kRunTimeout) << killed.detail;
  EXPECT_EQ(runner.MakeReference(RunRequest("good"), folder_ / "made", absl::Seconds(60)).outcome,
            Outcome::kOk)
      << "the lock is free again";
}

// Kernels, references and data of others are in the same folders of the worker.
TEST_F(ClientsTest, ARunnerReadsOnlyTheFilesOfItsRequests) {
  RunnerClient runner({.command = {absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-runner"), "--lock",
                                   folder_ / "lock"},
                       .input_parent = folder_ / "folders"});
  HONE_ASSERT_OK_AND_ASSIGN(const auto output, OutputFolder::Make(folder_ / "folders"));
  std::vector<record::RunRequest> requests = {RunRequest("reads_others"), RunRequest("good")};
  for (record::RunRequest& request : requests) request.reference_data = output->path() + "/made";
  const MeasureResult made = runner.MakeReference(requests[1], output->path(), absl::Seconds(60));
  ASSERT_EQ(made.outcome, Outcome::kOk) << made.detail;
  for (record::RunRequest& request : requests) request.reference_path.clear();
  requests.push_back(requests[0]);
  requests.push_back(requests[0]);
  requests[2].artifact_path = folder_ / "missing";
  runner.Run(
      requests, [](size_t) { return true; }, [](size_t) {},
      [&](size_t i, const MeasureResult& result) {
        EXPECT_EQ(result.outcome, i == 2 ? Outcome::kDeviceLost : Outcome::kOk) << result.detail;
        EXPECT_THAT(result.detail, HasSubstr(i == 2 ? "missing" : ""));
      });
}

TEST_F(ClientsTest, ABuilderOrRunnerThatWritesManyFilesIsEnded) {
  const std::string script =
      "while [ \"$1\" != --write ]; do shift; done\n"
      "for i in $(seq 20); do : > $2/$i; done\nsleep 1000";
  BuilderClient builder(
      {.command = {"/bin/sh", "-c", script, "sh"}, .output_parent = folder_ / "outputs"});
  const record::BuildResponse built = builder.Build({}, *artifacts_);
  EXPECT_EQ(built.outcome, Outcome::kCompileError);
  EXPECT_THAT(built.detail, HasSubstr("more files"));
  RunnerClient runner({.command = {"/bin/sh", "-c", script, "sh"}});
  std::filesystem::create_directory(folder_ / "references");
  const MeasureResult made = runner.MakeReference({}, folder_ / "references", absl::Seconds(100));
  EXPECT_EQ(made.outcome, Outcome::kCrash);
  EXPECT_THAT(made.detail, HasSubstr("other files"));
}

TEST_F(ClientsTest, RunsConfirmations) {
  record::RunRequest confirm = RunRequest("good");
  confirm.policy.name = "confirm";
  EXPECT_EQ(Run({RunRequest("good"), confirm, confirm, RunRequest("good")}),
            (std::vector(4, Outcome::kOk)));
}

// It ends after its answer, though the next request has been sent to it.
TEST_F(ClientsTest, ARunnerThatLostItsDeviceIsReplaced) {
  const ScriptedChild script(folder_ / "script", AnswerOf(Outcome::kDeviceLost), /*once=*/true);
  RunnerClient runner({.command = {script.path()}});
  // The second request is cancelled after it has been sent to the first process.
  std::vector<int> asked(3);
  runner.Run(
      std::vector<record::RunRequest>(3), [&](size_t i) { return ++asked[i] == 1; }, [](size_t) {},
      [&](size_t, const MeasureResult& result) {
        EXPECT_EQ(result.outcome, Outcome::kDeviceLost);
        details_.push_back(result.detail);
      });
  EXPECT_EQ(details_, (std::vector<std::string>{"scripted", "cancelled", "scripted"}));
  EXPECT_EQ(asked, (std::vector{1, 2, 1}));
}

TEST_F(ClientsTest, CancelledRequestsAreNotSent) {
  const ScriptedChild script(folder_ / "script", AnswerOf(Outcome::kOk));
  RunnerClient runner({.command = {script.path()}});
  std::vector<record::RunRequest> requests(7);
  for (size_t i = 0; i < requests.size(); ++i) requests[i].seed = i;
  requests[5].policy.name = "confirm";
  std::vector<size_t> started, done, cancelled;
  runner.Run(
      requests, [](size_t i) { return i == 0 || i == 3 || i == 4; },
      [&](size_t i) { started.push_back(i); },
      [&](size_t i, const MeasureResult& result) {
        done.push_back(i);
        if (result.outcome == Outcome::kOk) return;
        EXPECT_EQ(result.outcome, Outcome::kDeviceLost);
        EXPECT_EQ(result.detail, "cancelled");
        cancelled.push_back(i);
      });
  EXPECT_THAT(started, ElementsAre(0, 3, 4));
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(cancelled, ElementsAre(1, 2, 5, 6));
  std::vector<uint64_t> sent;
  for (const std::string& message : script.Requests()) {
    v1::RunRequest request;
    EXPECT_TRUE(request.ParseFromString(message));
    sent.push_back(request.seed());
  }
  EXPECT_THAT(sent, ElementsAre(0, 3, 4));
}

TEST_F(ClientsTest, AChildThatDiedWhileItWasIdleIsReplaced) {
  const ScriptedChild runs(folder_ / "runs", AnswerOf(Outcome::kOk), /*once=*/true);
  RunnerClient runner({.command = {runs.path()}});
  const auto run = [&] {
    Outcome outcome = Outcome::kInvalid;
    runner.Run(
        std::vector<record::RunRequest>(1), [](size_t) { return true; }, [](size_t) {},
        [&](size_t, const MeasureResult& result) { outcome = result.outcome; });
    return outcome;
  };
  EXPECT_EQ(run(), Outcome::kOk);
  EXPECT_EQ(run(), Outcome::kOk);
  EXPECT_EQ(runs.Requests().size(), 2u);

  const record::BuildResponse answer{.outcome = Outcome::kInvalid, .detail = "scripted"};
  const ScriptedChild builds(folder_ / "builds", record::ToProto(answer).SerializeAsString(),
                             /*once=*/true);
  BuilderClient builder({.command = {builds.path()}, .output_parent = folder_ / "outputs"});
  EXPECT_EQ(builder.Build({}, *artifacts_).detail, "scripted");
  EXPECT_EQ(builder.Build({}, *artifacts_).detail, "scripted");
  EXPECT_EQ(builds.Requests().size(), 2u);
}

TEST_F(ClientsTest, ARunnerThatDoesNotAnswerIsKilled) {
  RunnerClient runner({.command = {"/bin/sh", "-c", "sleep 1000"}});
  record::RunRequest request;
  request.time_limit_ms = 10;
  EXPECT_EQ(runner.MakeReference(request, folder_.path(), absl::Milliseconds(20)).outcome,
            Outcome::kRunTimeout);
}

}  // namespace
}  // namespace hone::agent
