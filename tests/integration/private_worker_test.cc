// A private worker that keeps failing, or a private server that is killed: clients are told within
// seconds.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kTune = {"tune", "matmul", "m=48", "n=80", "k=64"};

class PrivateWorkerTest : public ::testing::Test {
 protected:
  // Returns a program folder in which hone-worker prints a message and exits.
  std::string FolderWithBrokenWorker() {
    const std::string folder = folder_ / "bin";
    std::filesystem::create_directories(folder);
    for (const char* program : {"hone", "hone-server", "hone-builder", "hone-runner"}) {
      std::filesystem::copy_file(absl::StrCat(BinDir(), "/", program),
                                 absl::StrCat(folder, "/", program));
    }
    const std::string worker = folder + "/hone-worker";
    std::ofstream(worker) << "#!/bin/sh\necho 'no cores left' >&2\nexit 3\n";
    std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
    return folder;
  }
  // Expects that the command fails soon because of its worker. The limit of a minute allows for
  // busy machines.
  void ExpectToldAtOnce(std::vector<std::string> argv) {
    const absl::Time begin = absl::Now();
    const Result result = RunProgram(std::move(argv), home_.variables());
    EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
    EXPECT_EQ(result.code, 1) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("hone-worker exited with code 3: no cores left"));
  }
  int64_t Trials() const {
    const nlohmann::json jobs = OneLineOfJson(home_.Hone({"jobs", "list", "--json"}).output);
    return jobs.is_object() && !jobs["jobs"].empty() ? jobs["jobs"][0]["trials"].get<int64_t>() : 0;
  }

  TemporaryFolder folder_;
  HoneHome home_;
};

TEST_F(PrivateWorkerTest, WorkerThatExitsAtOnceIsReported) {
  std::vector<std::string> tune = kTune;
  tune.insert(tune.begin(), FolderWithBrokenWorker() + "/hone");
  ExpectToldAtOnce(tune);
}

TEST_F(PrivateWorkerTest, CrashLoopingWorkerEndsTheRun) {
  std::vector<std::string> words = kTune;
  words.insert(words.begin(), "hone");
  words.insert(words.end(), {"--trials", "100000"});
  Process tune(words, home_.variables());
  ASSERT_TRUE(Eventually([&] { return Trials() > 0; })) << tune.Errors();
  pid_t before = 0;
  for (int kills = 0; kills < 4; ++kills) {
    pid_t worker = 0;
    ASSERT_TRUE(Eventually([&] {
      worker = home_.ChildOfKeeper("hone-worker");
      return worker > 0 && worker != before;
    })) << "the worker was not restarted after "
        << kills << " kills";
    kill(worker, SIGKILL);
    before = worker;
  }
  EXPECT_EQ(tune.Wait(absl::Minutes(1)), 1) << tune.Errors();
  EXPECT_THAT(tune.Errors(), HasSubstr("hone-worker was killed by signal 9"));

  ASSERT_TRUE(Eventually([&] { return home_.Keeper() == 0; }));
  ExpectToldAtOnce({FolderWithBrokenWorker() + "/hone", "jobs", "resume", "1"});
}

// A client waits ten minutes for a server that was named, but the keeper knows that the private
// server has ended.
TEST_F(PrivateWorkerTest, AServerThatIsKilledEndsTheRunAtOnce) {
  std::vector<std::string> words = kTune;
  words.insert(words.begin(), "hone");
  words.insert(words.end(), {"--trials", "100000"});
  Process tune(words, home_.variables());
  ASSERT_TRUE(Eventually([&] { return Trials() > 0; })) << tune.Errors();
  const pid_t server = home_.ChildOfKeeper("hone-server");
  ASSERT_GT(server, 0);
  kill(server, SIGKILL);
  EXPECT_EQ(tune.Wait(absl::Minutes(1)), 1) << tune.Errors();
  EXPECT_THAT(tune.Errors(), HasSubstr("hone-server was killed by signal 9"));
  EXPECT_THAT(tune.Errors(), HasSubstr("jobs resume 1"));
}

TEST_F(PrivateWorkerTest, OtherTargetsAreRejectedExceptForLookups) {
  Words words = With(kTune, {"--target", "x86-avx2"});
  Transcript transcript("private_worker", {"hone"}, home_.variables());
  transcript.Run(words);
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir() + "/run/worker.log"));
  words[0] = "best";
  transcript.Run(words);
}

}  // namespace
}  // namespace hone::integration
