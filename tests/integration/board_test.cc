// A server and a builder on this machine, and a board: the bundle of deploy/bundle-worker.sh for
// AArch64 under QEMU's user-mode emulation, over TCP with mutual TLS. Everything but time is real:
// an emulator checks results and measures nothing. It has no seccomp, Landlock, thermal zones and
// counters, which the worker must say.

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kEmulator[] = "/usr/bin/qemu-aarch64";

class BoardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const bundle = std::getenv("HONE_BUNDLE_AARCH64");
    bundle_ = bundle == nullptr ? "" : bundle;
    if (!std::filesystem::exists(bundle_)) {
      GTEST_SKIP() << "there is no bundle: run deploy/bundle-worker.sh --arch aarch64 -o "
                   << bundle_;
    }
    if (access(kEmulator, X_OK) != 0) GTEST_SKIP() << kEmulator << " is missing";
    // This kernel cannot start programs of another architecture, so a script starts the emulator.
    // The program loader of the bundle is used, hence nothing of this machine.
    ASSERT_THAT(MakeDirectories(folder_ / "programs"), IsOk());
    const std::string runner = folder_ / "programs/hone-runner";
    ASSERT_THAT(WriteFileAtomically(
                    runner, absl::StrCat("#!/bin/sh\n"
                                         "exec ",
                                         kEmulator, " ", bundle_, "/libc/ld.so --library-path ",
                                         bundle_, "/libc ", bundle_, "/hone-runner \"$@\"\n")),
                IsOk());
    std::filesystem::permissions(runner, std::filesystem::perms::owner_all);
  }

  std::vector<std::string> Board(const std::vector<std::string>& words) const {
    return With({kEmulator, bundle_ + "/hone-worker", "--program-dir", folder_ / "programs",
                 "--lock", folder_ / "board.lock"},
                words);
  }
  std::unique_ptr<Process> StartBoard() const {
    return std::make_unique<Process>(
        Board({"--config", folder_ / "pi-07.conf", "--run-only", "--unconfined",
               "--allow-unguarded-files", "--run-limit", "60", "--state-dir", folder_ / "board"}));
  }
  Result Hone(const std::string& config, const Words& words) const {
    return RunProgram(With({"hone", "--config", folder_ / absl::StrCat("team/", config)}, words),
                      {}, absl::Minutes(4));
  }
  Words Tune(const Words& workload, const std::string& key, int trials) const {
    return With(With({"hone", "--config", folder_ / "team/client.conf", "tune"}, workload),
                {"--target", key, "--trials", absl::StrCat(trials), "--json"});
  }
  int64_t Trials() const {
    const nlohmann::json jobs =
        OneLineOfJson(Hone("client.conf", {"jobs", "list", "--json"}).output);
    return jobs.is_object() && !jobs["jobs"].empty() ? jobs["jobs"][0]["trials"].get<int64_t>()
                                                     : -1;
  }

  std::string bundle_;
  TemporaryFolder folder_;
};

TEST_F(BoardTest, DoctorSaysWhatIsMissing) {
  const Result doctor = RunProgram(Board({"--doctor", "--state-dir", folder_ / "state"}));
  EXPECT_EQ(doctor.code, 0) << doctor.errors;
  for (const char* finding :
       {"aarch64-", "an emulator runs this program", "times mean nothing",
        "this system cannot filter system calls", "Landlock", " MiB are free for "}) {
    EXPECT_THAT(doctor.output, HasSubstr(finding));
  }
}

TEST_F(BoardTest, TunesOnAnEmulatedBoardThatReboots) {
  ASSERT_EQ(RunProgram({"hone-server", "init", folder_ / "team", "--host", "localhost", "--port",
                        absl::StrCat(FreePort()), "--worker", "builder-1"})
                .code,
            0);
  Process server({"hone-server", "--config", folder_ / "team/hone.toml"});
  ASSERT_TRUE(Eventually([&] { return server.Errors().find("serving on") != std::string::npos; }))
      << server.Errors();
  ASSERT_EQ(RunProgram({"hone", "worker-config", "--authority", folder_ / "team", "--name", "pi-07",
                        "-o", folder_ / "pi-07.conf"})
                .code,
            0);
  Process builder({"hone-worker", "--config", folder_ / "team/worker-builder-1.conf",
                   "--build-only", "--state-dir", folder_ / "builder"});
  auto board = StartBoard();
  ASSERT_TRUE(
      Eventually([&] { return board->Errors().find("registered with") != std::string::npos; },
                 absl::Minutes(3)))
      << board->Errors();
  EXPECT_THAT(board->Errors(), HasSubstr("an emulator runs this program"));
  const nlohmann::json workers =
      OneLineOfJson(Hone("admin.conf", {"workers", "list", "--json"}).output);
  std::string key;
  for (const nlohmann::json& worker : workers["workers"]) {
    if (worker["can_run"] == true) key = worker["target"].get<std::string>();
  }
  ASSERT_THAT(key, StartsWith("aarch64-")) << workers;

  // The board loses its power while it measures.
  Process matmul(Tune({"matmul", "m=48", "n=48", "k=48"}, key, 6));
  EXPECT_TRUE(Eventually([&] { return Trials() >= 2; })) << matmul.Errors() << board->Errors();
  board->Signal(SIGKILL);
  board->Wait();
  board = StartBoard();
  EXPECT_EQ(matmul.Wait(absl::Minutes(4)), 0) << matmul.Errors() << board->Errors();
  EXPECT_EQ(OneLineOfJson(matmul.Output())["trials"], 6) << matmul.Output();
  for (const Words& workload :
       {Words{"conv2d", "n=1", "h=8", "w=8", "ci=8", "co=16", "k=3", "p=1"},
        Words{"quantized_conv2d", "n=1", "h=8", "w=8", "ci=8", "co=16", "k=3", "p=1"}}) {
    const Result tuned = RunProgram(Tune(workload, key, 4), {}, absl::Minutes(4));
    EXPECT_EQ(tuned.code, 0) << tuned.errors << board->Errors();
    EXPECT_THAT(tuned.output, HasSubstr("\"latency_ns\":"));
  }
  // Every candidate computed the right results on the emulated processor, and says what it was.
  const nlohmann::json records =
      OneLineOfJson(Hone("client.conf", {"records", "query", "--limit", "0", "--json"}).output);
  ASSERT_TRUE(records.is_object());
  EXPECT_GE(records["records"].size(), 14u);
  for (const nlohmann::json& record : records["records"]) {
    EXPECT_THAT(record["environment"]["cpu"].get<std::string>(), HasSubstr("emulated")) << record;
  }
}

}  // namespace
}  // namespace hone::integration
