#include "client/connection/private_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

// The lifetime of the private server. Shell scripts stand in for hone-server and hone-worker.
// tests/integration tests the same with the real programs.
namespace hone::client {
namespace {

using ::testing::HasSubstr;

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (absl::Now() < deadline) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return condition();
}

class PrivateServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ / "bin");
    WriteServer("touch \"$ready\"\nwhile :; do sleep 0.05; done\n");
    WriteProgram("hone-worker", "echo $$ >> " + root_ / "workers\nexec sleep 1000\n");
    for (const char* program : {"hone-builder", "hone-runner"}) WriteProgram(program, "exit 1\n");
  }
  void TearDown() override {
    EXPECT_TRUE(Eventually([&] { return !KeeperRuns(); })) << "the keeper still runs";
  }

  // Writes the server script. `body` runs with $ready set to the ready file; the script records its
  // process ID and ends on SIGTERM.
  void WriteServer(const std::string& body) {
    WriteProgram(
        "hone-server",
        absl::StrCat("echo $$ >> ", root_.path(), "/servers\n",
                     "while [ $# -gt 0 ]; do [ \"$1\" = --ready-file ] && ready=$2; shift; done\n",
                     body));
  }
  void WriteProgram(const std::string& name, const std::string& body) {
    const std::string path = absl::StrCat(root_.path(), "/bin/", name);
    std::ofstream(path) << "#!/bin/sh\n" << body;
    chmod(path.c_str(), 0755);
  }

  PrivateServer::Options Options(bool with_worker = false,
                                 const std::string& device = "cpu") const {
    return {.data_dir = root_ / "data",
            .program_dir = root_ / "bin",
            .with_worker = with_worker,
            .device = device,
            .timeout = absl::Seconds(20)};
  }

  // Returns the process IDs that a script recorded, oldest first.
  std::vector<pid_t> Pids(const std::string& file) const {
    std::vector<pid_t> pids;
    const auto text = ReadFile(root_ / file);
    if (!text.ok()) return pids;
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      int pid = 0;
      if (absl::SimpleAtoi(line, &pid)) pids.push_back(pid);
    }
    return pids;
  }
  static bool Lives(pid_t pid) { return kill(pid, 0) == 0; }
  bool KeeperRuns() const {
    const int fd = open((root_ / "data/private.lock").c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    const bool free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return !free;
  }

  // Starts a process with a client that attaches, reports it, and lives until it is killed.
  pid_t StartClient(bool with_worker, const std::string& device = "cpu") {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      auto server = PrivateServer::StartOrJoin(Options(with_worker, device));
      const char answer = server.ok() && (*server)->WaitUntilReady().ok() ? 'y' : 'n';
      if (write(ready[1], &answer, 1) != 1) _exit(1);
      while (true) pause();
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ready[0]);
    close(ready[1]);
    return pid;
  }
  static void KillClient(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  const TemporaryFolder root_;
};

TEST_F(PrivateServerTest, StartsAndEndsWithItsOnlyClient) {
  HONE_ASSERT_OK_AND_ASSIGN(auto server, PrivateServer::StartOrJoin(Options()));
  ASSERT_THAT(server->WaitUntilReady(), IsOk());
  EXPECT_THAT(server->address(), HasSubstr("unix:"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto lock, ReadFile(server->paths().lock));
  EXPECT_THAT(lock, HasSubstr(server->address()));
  ASSERT_EQ(Pids("servers").size(), 1u);
  const pid_t pid = Pids("servers")[0];
  EXPECT_TRUE(Lives(pid));
  EXPECT_TRUE(Pids("workers").empty()) << "a look-up starts no worker";
  server.reset();
  EXPECT_TRUE(Eventually([&] { return !Lives(pid); }));
}

TEST_F(PrivateServerTest, IsSharedAndEndsWithTheLastClient) {
  const pid_t first = StartClient(false);
  const pid_t second = StartClient(false);
  ASSERT_EQ(Pids("servers").size(), 1u);
  const pid_t server = Pids("servers")[0];
  KillClient(first);
  EXPECT_TRUE(Lives(server));
  EXPECT_TRUE(KeeperRuns());
  KillClient(second);
  EXPECT_TRUE(Eventually([&] { return !Lives(server) && !KeeperRuns(); }));
}

// "pkill -INT" of a command also reaches the keeper. The command still needs the server.
TEST_F(PrivateServerTest, AnInterruptDoesNotEndTheServer) {
  const pid_t first = StartClient(false);
  HONE_ASSERT_OK_AND_ASSIGN(const std::string lock, ReadFile(root_ / "data/private.lock"));
  const std::vector<std::string> words = absl::StrSplit(lock, absl::ByAnyChar(" \n"));
  int keeper = 0;
  ASSERT_TRUE(words.size() > 1 && absl::SimpleAtoi(words[1], &keeper)) << lock;
  kill(keeper, SIGINT);
  const pid_t second = StartClient(false);
  EXPECT_EQ(Pids("servers").size(), 1u) << "the second client joined the first";
  KillClient(first);
  KillClient(second);
}

TEST_F(PrivateServerTest, WorkerStartsWithFirstMeasuringClientAndRestarts) {
  const pid_t looks_up = StartClient(false);
  EXPECT_TRUE(Pids("workers").empty());
  const pid_t measures = StartClient(true);
  ASSERT_TRUE(Eventually([&] { return Pids("workers").size() == 1; }));
  const pid_t worker = Pids("workers")[0];
  kill(worker, SIGKILL);
  EXPECT_TRUE(Eventually([&] { return Pids("workers").size() == 2; }))
      << "the worker was not restarted";
  KillClient(measures);
  KillClient(looks_up);
  EXPECT_TRUE(Eventually([&] { return !Lives(Pids("workers")[1]) && !Lives(Pids("servers")[0]); }));
}

TEST_F(PrivateServerTest, EachDeviceHasAWorkerOfItsOwn) {
  WriteProgram("hone-worker", "echo \"$@\" >> " + root_ / "devices\nexec sleep 1000\n");
  const auto commands = [&] {
    const auto text = ReadFile(root_ / "devices");
    return text.ok() ? *text : std::string();
  };
  const pid_t cpu = StartClient(true);
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(commands(), "--device cpu"); }));
  const pid_t gpu = StartClient(true, "opencl:1");
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(commands(), "--device opencl:1"); }));
  EXPECT_THAT(commands(), HasSubstr("--state-dir " + root_ / "data/worker --exit"));
  EXPECT_THAT(commands(), HasSubstr("--state-dir " + root_ / "data/worker-opencl-1 --exit"));
  const pid_t again = StartClient(true, "opencl:1");
  for (const pid_t client : {again, gpu, cpu}) KillClient(client);
  EXPECT_TRUE(Eventually([&] { return !KeeperRuns(); }));
  const std::string all = commands();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 2)
      << "clients of one device share its worker";
}

TEST_F(PrivateServerTest, OnlyClientsOfTheDeviceAreToldThatItsWorkerFails) {
  WriteProgram("hone-worker",
               "case \"$*\" in *opencl*) echo 'no such device' >&2; exit 1;; esac\n"
               "exec sleep 1000\n");
  HONE_ASSERT_OK_AND_ASSIGN(auto cpu, PrivateServer::StartOrJoin(Options(/*with_worker=*/true)));
  HONE_ASSERT_OK_AND_ASSIGN(auto gpu,
                            PrivateServer::StartOrJoin(Options(/*with_worker=*/true, "opencl:3")));
  ASSERT_THAT(cpu->WaitUntilReady(), IsOk());
  ASSERT_THAT(gpu->WaitUntilReady(), IsOk());
  absl::Status status;
  EXPECT_TRUE(Eventually([&] { return !(status = gpu->Check()).ok(); }));
  EXPECT_THAT(std::string(status.message()), HasSubstr("exited with code 1: no such device"));
  EXPECT_THAT(cpu->Check(), IsOk());
}

TEST_F(PrivateServerTest, ReportsAWorkerThatKeepsExiting) {
  WriteProgram("hone-worker", "echo 'no cores left' >&2\nexit 3\n");
  HONE_ASSERT_OK_AND_ASSIGN(auto server, PrivateServer::StartOrJoin(Options(/*with_worker=*/true)));
  ASSERT_THAT(server->WaitUntilReady(), IsOk());
  absl::Status status;
  EXPECT_TRUE(Eventually([&] { return !(status = server->Check()).ok(); }));
  EXPECT_THAT(std::string(status.message()), HasSubstr("exited with code 3: no cores left"));
}

TEST_F(PrivateServerTest, StartFailureIsExplained) {
  WriteServer("echo 'the store is corrupt' >&2\nexit 1\n");
  HONE_ASSERT_OK_AND_ASSIGN(auto server, PrivateServer::StartOrJoin(Options()));
  EXPECT_THAT(server->WaitUntilReady(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the store is corrupt")));
}

TEST_F(PrivateServerTest, ReportsAServerThatDies) {
  HONE_ASSERT_OK_AND_ASSIGN(auto server, PrivateServer::StartOrJoin(Options()));
  ASSERT_THAT(server->WaitUntilReady(), IsOk());
  EXPECT_THAT(server->Check(), IsOk());
  kill(Pids("servers")[0], SIGKILL);
  absl::Status status;
  EXPECT_TRUE(Eventually([&] { return !(status = server->Check()).ok(); }));
  EXPECT_THAT(std::string(status.message()), HasSubstr("hone-server was killed by signal 9"));
}

TEST_F(PrivateServerTest, ConcurrentClientsShareOneServer) {
  constexpr int kClients = 8;
  std::vector<pid_t> clients;
  int results[2];
  ASSERT_EQ(pipe(results), 0);
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(fork());
    if (clients.back() == 0) {
      auto server = PrivateServer::StartOrJoin(Options());
      const char answer = server.ok() && (*server)->WaitUntilReady().ok() ? 'y' : 'n';
      if (write(results[1], &answer, 1) != 1) _exit(1);
      while (true) pause();
    }
  }
  for (int i = 0; i < kClients; ++i) {
    char answer = 0;
    ASSERT_EQ(read(results[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
  }
  EXPECT_EQ(Pids("servers").size(), 1u);
  for (const pid_t client : clients) KillClient(client);
  EXPECT_TRUE(Eventually([&] { return !Lives(Pids("servers")[0]); }));
}

TEST_F(PrivateServerTest, SequentialClientsEachGetAServer) {
  for (int i = 0; i < 5; ++i) {
    HONE_ASSERT_OK_AND_ASSIGN(auto server, PrivateServer::StartOrJoin(Options()));
    EXPECT_THAT(server->WaitUntilReady(), IsOk());
    EXPECT_TRUE(Lives(Pids("servers").back()));
  }
}

TEST_F(PrivateServerTest, DoesNotInheritClientPipes) {
  int output[2];
  ASSERT_EQ(pipe(output), 0);
  HONE_ASSERT_OK_AND_ASSIGN(auto server, PrivateServer::StartOrJoin(Options()));
  ASSERT_THAT(server->WaitUntilReady(), IsOk());
  close(output[1]);
  char byte;
  EXPECT_EQ(read(output[0], &byte, 1), 0)
      << "a reader of the client's output would wait until the server ends";
  close(output[0]);
}

TEST_F(PrivateServerTest, AcceptsALongPath) {
  PrivateServer::Options options = Options();
  options.data_dir =
      absl::StrCat(root_.path(), "/", std::string(90, 'a'), "/", std::string(90, 'b'));
  HONE_ASSERT_OK_AND_ASSIGN(auto server, PrivateServer::StartOrJoin(options));
  EXPECT_THAT(server->WaitUntilReady(), IsOk());
  const std::string lock = server->paths().lock;
  server.reset();
  EXPECT_TRUE(Eventually([&] { return !Lives(Pids("servers")[0]); }));
}

TEST_F(PrivateServerTest, ExplainsMissingProgramsAndUnwritableFolders) {
  PrivateServer::Options options = Options();
  options.program_dir = root_.path();
  auto server = PrivateServer::StartOrJoin(options);
  EXPECT_THAT(server,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("hone-server is missing")));

  for (const char* program : {"hone-worker", "hone-builder", "hone-runner"}) {
    std::filesystem::rename(root_ / "bin/" + program, root_ / "gone");
    EXPECT_THAT(PrivateServer::StartOrJoin(Options()), IsOk()) << "a look-up needs no " << program;
    server = PrivateServer::StartOrJoin(Options(/*with_worker=*/true));
    EXPECT_THAT(server, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr(absl::StrCat(program, " is missing"))));
    std::filesystem::rename(root_ / "gone", root_ / "bin/" + program);
  }

  options = Options();
  options.data_dir = "/proc/hone";  // where even root cannot create a folder
  server = PrivateServer::StartOrJoin(options);
  EXPECT_FALSE(server.ok());
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("XDG_DATA_HOME"));
}

TEST(DefaultDataDirTest, FollowsTheEnvironment) {
  const char* home = getenv("HOME");
  const std::string saved_home = home == nullptr ? "" : home;
  const char* data = getenv("XDG_DATA_HOME");
  const std::optional<std::string> saved_data =
      data == nullptr ? std::nullopt : std::optional<std::string>(data);
  setenv("HOME", "/home/somebody", 1);
  setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(*DefaultDataDir(), "/data/hone");
  unsetenv("XDG_DATA_HOME");
  EXPECT_EQ(*DefaultDataDir(), "/home/somebody/.local/share/hone");
  unsetenv("HOME");
  EXPECT_THAT(DefaultDataDir(), StatusIs(absl::StatusCode::kFailedPrecondition));
  if (!saved_home.empty()) setenv("HOME", saved_home.c_str(), 1);
  if (saved_data.has_value()) setenv("XDG_DATA_HOME", saved_data->c_str(), 1);
}

}  // namespace
}  // namespace hone::client
