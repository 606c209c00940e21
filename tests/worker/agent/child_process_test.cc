#include "worker/agent/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/time/clock.h"
#include "common/record/framing.h"
#include "tests/status.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<ChildProcess> Start(const std::vector<std::string>& argv) {
  auto child = ChildProcess::Start(argv);
  EXPECT_THAT(child, IsOk());
  return child.ok() ? *std::move(child) : nullptr;
}

absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

TEST(ChildProcessTest, PipesConnectInputAndOutput) {
  const auto child = Start({"/bin/cat"});
  ASSERT_THAT(record::WriteFrame(child->input(), "hello", Soon()), IsOk());
  EXPECT_EQ(record::ReadFrame(child->output(), Soon()).value(), "hello");
  child->CloseInput();
  EXPECT_THAT(record::ReadFrame(child->output(), Soon()), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(child->Wait(Soon()).ToString(), "exit status 0");
}

TEST(ChildProcessTest, ReportsExitStatusAndErrorOutput) {
  const auto exits = Start({"/bin/sh", "-c", "echo cannot >&2; exit 3"});
  EXPECT_EQ(exits->Wait(Soon()).ToString(), "exit status 3");
  EXPECT_EQ(exits->TakeErrorOutput(), "cannot\n");
  EXPECT_EQ(exits->TakeErrorOutput(), "");
  const auto crashes = Start({"/bin/sh", "-c", "kill -SEGV $$"});
  EXPECT_EQ(crashes->Wait(Soon()).ToString(), "killed by SIGSEGV");
}

TEST(ChildProcessTest, EndlessChildIsKilled) {
  const auto child = Start({"/bin/sleep", "1000"});
  const ChildEnd end = child->Wait(absl::Now() + absl::Milliseconds(10));
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(child->Wait(absl::InfiniteFuture()).signal, SIGKILL);
}

TEST(ChildProcessTest, IsKilledAndReapedWithItsObject) {
  auto child = Start({"/bin/sleep", "1000"});
  const pid_t pid = child->pid();
  child.reset();
  EXPECT_EQ(kill(pid, 0), -1);
}

// A kernel of an OpenCL driver on the CPU can start processes.
TEST(ChildProcessTest, WhatItHasStartedEndsWithIt) {
  for (const char* const script : {"sleep 1000 & exit 0", "sleep 1000 & sleep 1000"}) {
    const auto child = Start({"/bin/sh", "-c", script});
    child->Wait(absl::Now() + absl::Milliseconds(200));
    // The process that is left has the other end of the pipe.
    pollfd output = {.fd = child->output(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&output, 1, 10000), 1) << script;
    char byte;
    EXPECT_EQ(read(child->output(), &byte, 1), 0) << script;
  }
}

TEST(ChildProcessTest, MissingProgramIsNamed) {
  EXPECT_THAT(ChildProcess::Start({"/no/such/program"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/program")));
}

TEST(ChildProcessTest, ProcessorTimeGrowsOnlyWhileItWorks) {
  const auto sleeps = Start({"/bin/sleep", "1000"});
  const auto works = Start({"/bin/sh", "-c", "while :; do :; done"});
  const absl::Time limit = Soon();
  while (works->CpuTime() < absl::Milliseconds(30)) ASSERT_LT(absl::Now(), limit);
  EXPECT_LT(sleeps->CpuTime(), absl::Milliseconds(30));
}

TEST(ChildProcessTest, LongErrorOutputIsTruncated) {
  const auto child = Start({"/bin/sh", "-c", "seq 100000 >&2"});
  child->Wait(Soon());
  const std::string words = child->TakeErrorOutput();
  EXPECT_LE(words.size(), 4096u);
  EXPECT_THAT(words, HasSubstr("100000"));
}

// Its memory would be that of the agent.
TEST(ChildProcessTest, ErrorOutputIsBounded) {
  const auto child = Start({"/bin/sh", "-c", "head -c 50000000 /dev/zero >&2; echo $?"});
  child->Wait(Soon());
  char status[8] = {};
  EXPECT_GT(read(child->output(), status, sizeof status), 0);
  EXPECT_NE(std::string(status), "0\n") << "the writes fail";
  int64_t most_bytes = 0;  // of the files in memory of this process
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat file = {};
    std::error_code error;
    const std::string path = std::filesystem::read_symlink(entry.path(), error);
    if (error || path.find("hone-child-stderr") == std::string::npos) continue;
    ASSERT_EQ(stat(entry.path().c_str(), &file), 0);
    most_bytes = std::max<int64_t>(most_bytes, file.st_blocks * 512);
  }
  EXPECT_GT(most_bytes, 0);
  EXPECT_LE(most_bytes, 1 << 20);
  EXPECT_LE(child->TakeErrorOutput().size(), 4096u);
}

TEST(ChildProcessTest, InheritsNoDescriptors) {
  // Without close-on-exec, as a parent of the agent may leave them.
  const int secret = open("/etc/hostname", O_RDONLY);
  ASSERT_GE(secret, 0);
  const auto child = Start({"/bin/sh", "-c", "exec ls /proc/self/fd 1>&2"});
  child->Wait(Soon());
  close(secret);
  EXPECT_EQ(child->TakeErrorOutput(), "0\n1\n2\n3\n") << "3: the folder that it lists";
}

TEST(ChildProcessTest, InheritsNoSecretsInItsEnvironment) {
  setenv("HONE_TOKEN", "secret", 1);
  setenv("CREDENTIALS_DIRECTORY", "/run/credentials", 1);
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  const auto child = Start({"/usr/bin/env"});
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(child->output(), buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(text, Not(HasSubstr("credentials")));
  EXPECT_THAT(text, HasSubstr("CUDA_VISIBLE_DEVICES=1\n"));
  EXPECT_THAT(text, HasSubstr("PATH="));
}

}  // namespace
}  // namespace hone::agent
