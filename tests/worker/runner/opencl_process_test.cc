// The real hone-runner with an OpenCL device: its sandbox lets the driver work, and a kernel that
// hangs or crashes ends the process alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/host_lock.h"
#include "tests/status.h"
#include "tests/worker/runner/gpu_process.h"

namespace hone::runner {
namespace {

using record::MeasureResult;
using record::Outcome;
using ::testing::HasSubstr;

class OpenClProcessTest : public GpuProcessTest {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoOpenCl(); !why.empty()) GTEST_SKIP() << why;
    std::filesystem::create_directory(folder_ / "tmp");
    setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
    StartOn("opencl:0");
  }
  void TearDown() override {
    runner_.reset();
    unsetenv("TMPDIR");
    // The runner's helper process may be removing its scratch folder at the same time.
    std::error_code error;
    for (int i = 0; i < 100 && std::filesystem::exists(folder_.path(), error); ++i)
      std::filesystem::remove_all(folder_.path(), error);
  }

  // What the runner keeps in the folder for temporary files.
  int ScratchFolders() const {
    int count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(folder_ / "tmp")) {
      ++count;
    }
    return count;
  }
  bool ScratchIsRemoved() const {
    for (int i = 0; i < 1000 && ScratchFolders() > 0; ++i) absl::SleepFor(absl::Milliseconds(10));
    return ScratchFolders() == 0;
  }
};

TEST_F(OpenClProcessTest, KernelsRunInTheSandbox) {
  for (const char* const extra : {"", "sum += 0;", "sum *= 1;"}) {
    const absl::StatusOr<MeasureResult> result = Run(MatmulModule(extra));
    ASSERT_THAT(result, IsOk()) << runner_->TakeErrorOutput();
    EXPECT_EQ(result->outcome, Outcome::kOk) << result->detail;
    EXPECT_GT(result->latency_ns, 100);
  }
  EXPECT_EQ(ScratchFolders(), 1);
  runner_->CloseInput();
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 0");
  EXPECT_TRUE(ScratchIsRemoved());
}

TEST_F(OpenClProcessTest, OneProcessSurvivesFaultsThatItFinds) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto wrong, Run(MatmulModule("sum += 1;")));
  EXPECT_EQ(wrong.outcome, Outcome::kWrongOutput) << wrong.detail;
  HONE_ASSERT_OK_AND_ASSIGN(const auto refused, Run(MatmulModule("sum = missing;")));
  EXPECT_EQ(refused.outcome, Outcome::kCompileError) << refused.detail;
  EXPECT_THAT(refused.detail, HasSubstr("missing"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto right, Run(MatmulModule()));
  EXPECT_EQ(right.outcome, Outcome::kOk) << right.detail;
}

TEST_F(OpenClProcessTest, AHangEndsTheProcessWithItsOutcome) {
  ASSERT_THAT(Run(MatmulModule()), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto result,
      Run(MatmulModule("for (volatile int go = 1; go != 0;) sum += 1;"), /*limit_ms=*/2000));
  EXPECT_EQ(result.outcome, Outcome::kRunTimeout);
  EXPECT_THAT(result.detail, HasSubstr("within 2 s"));
  EXPECT_EQ(runner_->Wait(Limit()).signal, 0);
  EXPECT_TRUE(ScratchIsRemoved());
  // The lock is free again.
  EXPECT_THAT(HostLock::Acquire(HostLock::Mode::kExclusive, Limit(), folder_ / "lock"), IsOk());
}

TEST_F(OpenClProcessTest, AnUnknownDeviceEndsTheProcessWithAMessage) {
  StartOn("opencl:1000");
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 1");
  EXPECT_THAT(runner_->TakeErrorOutput(), HasSubstr("this machine has opencl:0"));
}

#if defined(__x86_64__)
// PoCL's kernels are code of the process. They may not use the network, nor write files outside of
// the runner's folders.
TEST_F(OpenClProcessTest, ForbiddenSystemCallsOfAKernelFail) {
  const std::string device = absl::StrCat(
      R"(
long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}
constant char path[] = ")",
      folder_.path(), "/written\";\n");
  constexpr char kCalls[] = R"(
  if (i == 0 && j == 0) {
    private char name[256];
    for (int n = 0; n < sizeof(path); ++n) name[n] = path[n];
    // socket(AF_INET, SOCK_STREAM, 0), open(name, O_CREAT | O_WRONLY, 0600), kill(1, 0),
    // fcntl(0, F_SETOWN, 1), truncate(name, 0), and ioctl(0, TIOCSTI, 0) with a bit that Linux ignores. The last one
    // has no terminal here, which would be another error than EPERM.
    if (call(41, 2, 1, 0) >= 0 || call(2, (long)name, 0101, 0600) >= 0 || call(62, 1, 0, 0) >= 0 ||
        call(72, 0, 8, 1) >= 0 || call(76, (long)name, 0, 0) != -1 || call(16, 0, 0x100005412, 0) != -1) {
      sum = -1;
    }
    // chmod(folder, 0) does nothing.
    name[sizeof(path) - sizeof("/written")] = 0;
    call(90, (long)name, 0, 0);
  }
)";
  target::GpuModule module = MatmulModule(kCalls);
  module.code = device + module.code;
  const auto result = Run(module);
  // PoCL 6.0 cannot compile this text: LLVM 18 crashes.
  if (!result.ok() && runner_->Wait(Limit()).signal == SIGSEGV) {
    GTEST_SKIP() << "PoCL crashes: " << runner_->TakeErrorOutput();
  }
  ASSERT_THAT(result, IsOk()) << runner_->TakeErrorOutput();
  if (result->outcome == Outcome::kCompileError) GTEST_SKIP() << "not PoCL: " << result->detail;
  EXPECT_EQ(result->outcome, Outcome::kOk) << result->detail;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "written"));
  EXPECT_NE(std::filesystem::status(folder_.path()).permissions(), std::filesystem::perms::none);
}
#endif

}  // namespace
}  // namespace hone::runner
