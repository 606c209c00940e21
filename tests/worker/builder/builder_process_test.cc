// The real hone-builder is confined: whatever takes over its compiler reaches nothing but the
// folder of the process. A hostile compiler stands for that, because it is code in the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/program.h"
#include "common/base/sha256.h"
#include "common/record/framing.h"
#include "common/record/proto_convert.h"
#include "common/target/target.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "worker/agent/child_process.h"

namespace hone {
namespace {

using agent::ChildProcess;
using record::BuildResponse;
using record::Outcome;
using ::testing::HasSubstr;

constexpr absl::string_view kRelu =
    "workload relu\n"
    "input A: f32[64, 128]\n"
    "output C[i: 64, j: 128] = max(A[i, j], 0.0)\n";
constexpr absl::string_view kCpuTrace = "trace 1\nb0 = block(\"C\")\n";
constexpr absl::string_view kTiledTrace =
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1 = loops(b0)\n"
    "l2, l3 = split(l1, 8, 16)\n"
    "parallel(l0)\n"
    "vectorize(l3)\n";
constexpr absl::string_view kGpuTrace =
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1 = loops(b0)\n"
    "bind(l0, \"blockIdx.x\")\n"
    "bind(l1, \"threadIdx.x\")\n";

class BuilderProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { signal(SIGPIPE, SIG_IGN); }

  // `prefix`: a program that starts the builder, and its options.
  void Start(const std::vector<std::string>& more = {},
             const std::vector<std::string>& prefix = {}) {
    std::vector<std::string> command = prefix;
    command.insert(command.end(), {absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-builder"), "--lock",
                                   folder_ / "lock", "--write", write_dir_});
    command.insert(command.end(), more.begin(), more.end());
    HONE_ASSERT_OK_AND_ASSIGN(builder_, ChildProcess::Start(command));
  }

  absl::StatusOr<BuildResponse> Build(absl::string_view trace, const std::string& target) {
    const record::BuildRequest request{.workload = std::string(kRelu),
                                       .space = absl::StrCat(kRelu, trace),
                                       .target = target,
                                       .artifact_dir = artifact_dir_};
    EXPECT_THAT(record::WriteFrame(builder_->input(), record::ToProto(request).SerializeAsString(),
                                   Limit()),
                IsOk());
    const auto message = record::ReadFrame(builder_->output(), Limit());
    if (!message.ok()) return message.status();
    v1::BuildResponse response;
    EXPECT_TRUE(response.ParseFromString(*message));
    return record::FromProto(response);
  }
  absl::StatusOr<BuildResponse> BuildForCpu() {
    return Build(kCpuTrace, target::DetectHost().ToText());
  }

  // Returns what the hostile compiler reports of an attempt, or the last words of the process.
  std::string Attempt(const std::string& what) {
    setenv("HONE_NVRTC", HOSTILE_COMPILER, 1);
    setenv("HONE_FAKE_COMPILER", what.c_str(), 1);
    Start();
    unsetenv("HONE_NVRTC");
    unsetenv("HONE_FAKE_COMPILER");
    const auto built = Build(kGpuTrace, target::TargetByName("nvidia/a100")->ToText());
    if (built.ok()) return built->detail;
    const std::string end = builder_->Wait(Limit()).ToString();
    return absl::StrCat(end, ": ", builder_->TakeErrorOutput());
  }
  static absl::Time Limit() { return absl::Now() + absl::Seconds(60); }

  const TemporaryFolder folder_;
  const TemporaryFolder output_;
  std::string write_dir_ = output_.path();  // of the process
  std::string artifact_dir_ = output_.path();
  std::unique_ptr<ChildProcess> builder_;
};

TEST_F(BuilderProcessTest, BuildsIntoItsFolder) {
  Start();
  for (int i = 0; i < 2; ++i) {
    HONE_ASSERT_OK_AND_ASSIGN(const BuildResponse built, BuildForCpu());
    ASSERT_EQ(built.outcome, Outcome::kOk) << built.detail << builder_->TakeErrorOutput();
    HONE_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(output_ / built.artifact_digest));
    EXPECT_EQ(Sha256Of(bytes), built.artifact_digest);
  }
  for (const char* const target : {"arm-neon", "generic/opencl"}) {
    HONE_ASSERT_OK_AND_ASSIGN(const BuildResponse built,
                              Build(absl::string_view(target) == "arm-neon" ? kCpuTrace : kGpuTrace,
                                    target::TargetByName(target)->ToText()));
    EXPECT_EQ(built.outcome, Outcome::kOk) << target << built.detail;
  }
}

// A winner is built again on another machine, and must give the same bytes there.
TEST_F(BuilderProcessTest, AnArtifactDependsOnlyOnItsCandidate) {
  struct Candidate {
    absl::string_view trace;
    std::string target;
  };
  std::vector<Candidate> candidates = {{kCpuTrace, target::DetectHost().ToText()}};
  for (const char* const cpu : {"x86-avx2", "arm-neon"}) {
    candidates.push_back({kCpuTrace, target::TargetByName(cpu)->ToText()});
    candidates.push_back({kTiledTrace, target::TargetByName(cpu)->ToText()});
  }
  for (const char* const gpu : {"generic/opencl", "nvidia/a100"}) {
    candidates.push_back({kGpuTrace, target::TargetByName(gpu)->ToText()});
  }
  const std::vector<std::vector<std::string>> places = {
      {},
      {"/usr/bin/env", "LC_ALL=tr_TR.UTF-8", "TZ=Asia/Kathmandu", "HOME=/nowhere", "COLUMNS=7",
       "SOURCE_DATE_EPOCH=1", "USER=somebody"},
      {"/usr/bin/env", "-i", "-C", folder_.path(), "LANG=de_DE.UTF-8"},
  };
  std::vector<std::string> expected(candidates.size());
  for (size_t place = 0; place < places.size(); ++place) {
    artifact_dir_ = absl::StrCat(output_.path(), "/", std::string(40 * place + 1, 'p'));
    write_dir_ = artifact_dir_;
    ASSERT_TRUE(std::filesystem::create_directory(artifact_dir_));
    Start({}, places[place]);
    // What was built before in the same process must not matter either.
    for (size_t i = 0; i < 2 * candidates.size(); ++i) {
      const size_t which = (i * (place + 1) + place) % candidates.size();
      const auto& [trace, target] = candidates[which];
      HONE_ASSERT_OK_AND_ASSIGN(const BuildResponse built, Build(trace, target));
      ASSERT_EQ(built.outcome, Outcome::kOk) << target << built.detail;
      std::string& digest = expected[which];
      if (digest.empty()) digest = built.artifact_digest;
      EXPECT_EQ(built.artifact_digest, digest) << "place " << place << ", " << target << trace;
    }
  }
}

TEST_F(BuilderProcessTest, WritesNowhereElse) {
  artifact_dir_ = folder_.path();
  Start();
  HONE_ASSERT_OK_AND_ASSIGN(const BuildResponse built, BuildForCpu());
  EXPECT_EQ(built.outcome, Outcome::kDeviceLost);
  EXPECT_THAT(built.detail, HasSubstr("Permission denied"));
  EXPECT_THAT(Attempt("write:" + folder_ / "file"), HasSubstr("it failed: Permission denied"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "file"));
  EXPECT_THAT(Attempt("write:" + output_ / "file"), HasSubstr("it succeeded"));
}

TEST_F(BuilderProcessTest, ReadsNoFilesOfItsUser) {
  std::ofstream(folder_ / "token") << "secret";
  EXPECT_THAT(Attempt("read:" + folder_ / "token"), HasSubstr("it failed: Permission denied"));
  EXPECT_THAT(Attempt("read:/etc/passwd"), HasSubstr("it failed: Permission denied"));
  // The environment of the agent, which may have secrets.
  EXPECT_THAT(Attempt(absl::StrCat("read:/proc/", getpid(), "/environ")),
              HasSubstr("it failed: Permission denied"));
  EXPECT_THAT(Attempt("read:/usr/bin/env"), HasSubstr("it succeeded"));
}

TEST_F(BuilderProcessTest, HasNoSecretsInItsEnvironment) {
  setenv("HONE_TOKEN", "secret", 1);
  setenv("CREDENTIALS_DIRECTORY", "/run/credentials", 1);
  EXPECT_THAT(Attempt("variable:HONE_TOKEN"), HasSubstr("it failed"));
  EXPECT_THAT(Attempt("variable:CREDENTIALS_DIRECTORY"), HasSubstr("it failed"));
  EXPECT_THAT(Attempt("variable:PATH"), HasSubstr("it succeeded"));
}

TEST_F(BuilderProcessTest, AForbiddenCallEndsIt) {
  for (const char* const what : {"socket", "fork", "execute", "trace", "kill"}) {
    EXPECT_THAT(Attempt(what), HasSubstr("killed by SIGSYS")) << what;
  }
}

TEST_F(BuilderProcessTest, CannotExceedItsLimits) {
  EXPECT_THAT(Attempt("limit"), HasSubstr("it failed: Operation not permitted"));
  EXPECT_THAT(Attempt("pin"), HasSubstr("it failed: Operation not permitted"));
  EXPECT_THAT(Attempt("folder:" + output_ / "folder"),
              HasSubstr("it failed: Operation not permitted"));
  EXPECT_THAT(Attempt("thread"), HasSubstr("it failed: Operation not permitted"));
  EXPECT_THAT(Attempt("memory"), HasSubstr("it failed: Cannot allocate memory"));
  EXPECT_THAT(Attempt("file"), HasSubstr("it failed: File too large"));
}

// The trace of a draft and the kernels of a network come from a server.
TEST_F(BuilderProcessTest, TheCommandsOfUsersAreConfinedToo) {
  std::ofstream(folder_ / "token") << "secret";
  std::filesystem::create_directory(folder_ / "temporary");
  const auto code = [&](const std::string& attempt, const std::string& target) {
    const auto ran =
        RunProgram({.words = {absl::StrCat(getenv("HONE_BIN_DIR"), "/hone-builder"), "--lock",
                              folder_ / "lock", "code", "--artifact", "--target", target, "-"},
                    .input = absl::StrCat(kRelu, target == "native" ? kCpuTrace : kGpuTrace),
                    .environment = {{"HONE_NVRTC", HOSTILE_COMPILER},
                                    {"HONE_FAKE_COMPILER", attempt},
                                    {"TMPDIR", folder_ / "temporary"}}});
    EXPECT_THAT(ran, IsOk());
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "temporary"));
    return ran.value_or(ProgramResult{});
  };
  const ProgramResult good = code("", "native");
  EXPECT_TRUE(good.ok()) << good.errors;
  EXPECT_FALSE(good.output.empty());
  EXPECT_THAT(code("read:" + folder_ / "token", "nvidia/a100").errors,
              HasSubstr("it failed: Permission denied"));
  EXPECT_THAT(code("write:" + folder_ / "file", "nvidia/a100").errors,
              HasSubstr("it failed: Permission denied"));
  const ProgramResult forbidden = code("socket", "nvidia/a100");
  EXPECT_EQ(WEXITSTATUS(forbidden.wait_status), 1);
  EXPECT_THAT(forbidden.errors, HasSubstr("a system call which its sandbox forbids"));
}

// NVIDIA's compiler works within the sandbox.
TEST_F(BuilderProcessTest, CompilesWithNvrtc) {
  Start();
  HONE_ASSERT_OK_AND_ASSIGN(const BuildResponse built,
                            Build(kGpuTrace, target::TargetByName("nvidia/a100")->ToText()));
  if (built.outcome == Outcome::kDeviceLost) GTEST_SKIP() << built.detail;
  EXPECT_EQ(built.outcome, Outcome::kOk) << built.detail;
}

}  // namespace
}  // namespace hone
