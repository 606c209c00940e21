#include "worker/agent/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "absl/time/clock.h"
#include "common/record/framing.h"
#include "tests/status.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace hone::agent
