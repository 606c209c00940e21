// The real hone-runner on the fake driver: its sandbox lets the driver work, and each fault of a
// kernel, a device or a driver becomes an outcome or a message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "common/base/host_lock.h"
#include "common/target/device_list.h"
#include "tests/status.h"
#include "tests/worker/runner/cuda_modules.h"
#include "tests/worker/runner/gpu_process.h"

namespace hone::runner {
namespace {

using record::MeasureResult;
using record::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CudaProcessTest : public GpuProcessTest {
 protected:
  CudaProcessTest() { setenv("LD_LIBRARY_PATH", FAKE_CUDA_DIR, 1); }
  ~CudaProcessTest() override {
    runner_.reset();
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("HONE_FAKE_CUDA");
  }

  // `faults` are those of tests/fakes/cuda/libraries/faults.h.
  void Start(const std::string& faults) {
    setenv("HONE_FAKE_CUDA", faults.c_str(), 1);
    StartOn("cuda");
  }
  // Expects that a kernel ends with an outcome; returns why.
  std::string Failure(const std::string& faults, Outcome outcome, absl::string_view extra = "",
                      int64_t limit_ms = 20000) {
    Start(faults);
    const auto result = Run(CudaMatmulModule(extra), limit_ms);
    EXPECT_THAT(result, IsOk()) << runner_->TakeErrorOutput();
    if (!result.ok()) return "";
    EXPECT_EQ(record::OutcomeName(result->outcome), record::OutcomeName(outcome)) << result->detail;
    return result->detail;
  }
  // What the program says of its devices.
  target::DeviceList List(const std::string& faults) {
    setenv("HONE_FAKE_CUDA", faults.c_str(), 1);
    StartWith({"--list-devices"});
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(runner_->output(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    const auto list = target::DeviceList::FromJson(text);
    EXPECT_THAT(list, IsOk()) << text << runner_->TakeErrorOutput();
    return list.value_or(target::DeviceList());
  }
};

// Also with a driver that makes no graphs of launches, and while another GPU is timed.
class CudaTimingTest : public CudaProcessTest, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Drivers, CudaTimingTest, testing::Values("", "no_graphs"));

TEST_P(CudaTimingTest, KernelsRunInTheSandbox) {
  Start(GetParam());
  HostLock of_another_gpu;  // taken after the reference has been made
  for (const char* const extra : {"", "sum *= 1;"}) {
    const absl::StatusOr<MeasureResult> result = Run(CudaMatmulModule(extra));
    ASSERT_THAT(result, IsOk()) << runner_->TakeErrorOutput();
    EXPECT_EQ(result->outcome, Outcome::kOk) << result->detail;
    EXPECT_GT(result->latency_ns, 100);
    EXPECT_EQ(result->machine.frequency_mhz, 1410) << "of the GPU, from NVML";
    EXPECT_EQ(result->machine.temperature_c, 55);
    HONE_ASSERT_OK_AND_ASSIGN(
        of_another_gpu, HostLock::Acquire(HostLock::Mode::kDevice, Limit(), folder_ / "lock"));
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto wrong, Run(CudaMatmulModule("sum += 1;")));
  EXPECT_EQ(wrong.outcome, Outcome::kWrongOutput) << wrong.detail;
  runner_->CloseInput();
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 0");
}

TEST_F(CudaProcessTest, AFaultOfAKernelIsItsCrashAndEndsTheProcess) {
  EXPECT_THAT(Failure("fail=700", Outcome::kCrash),
              AllOf(HasSubstr("kernel 'matmul'"), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS")));
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 0");
  // Threads that wait at different barriers.
  EXPECT_THAT(Failure("", Outcome::kCrash, "if (x == 0) __syncthreads();"),
              HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 0");
}

TEST_F(CudaProcessTest, ALostDeviceEndsTheProcess) {
  EXPECT_THAT(Failure("fail=999", Outcome::kDeviceLost), HasSubstr("nvidia-smi --gpu-reset"));
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 0");
  EXPECT_THAT(Failure("fail=214", Outcome::kDeviceLost), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
}

TEST_F(CudaProcessTest, AHangEndsTheProcessWithItsOutcome) {
  EXPECT_THAT(Failure("hang", Outcome::kRunTimeout, "", /*limit_ms=*/1000),
              HasSubstr("within 1 s"));
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 0");
}

TEST_F(CudaProcessTest, TooLittleMemoryIsAnOutcome) {
  EXPECT_THAT(Failure("memory=20000", Outcome::kOutOfMemory), HasSubstr("bytes"));
  // The device goes on.
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, Run(CudaMatmulModule()));
  EXPECT_EQ(again.outcome, Outcome::kOutOfMemory);
}

TEST_F(CudaProcessTest, ImpossibleLaunchesAreRefused) {
  Start("");
  target::GpuModule module = CudaMatmulModule();
  const auto refusal = [&] {
    const auto result = Run(module);
    EXPECT_THAT(result, IsOk());
    EXPECT_EQ(result->outcome, Outcome::kInvalid) << result->detail;
    return result->detail;
  };
  module.launches[0].shared_bytes = 164 << 10;
  EXPECT_THAT(refusal(), HasSubstr("shared memory"));
  // More than programs get without asking for it.
  module.launches[0].shared_bytes = 96 << 10;
  EXPECT_EQ(Run(module)->outcome, Outcome::kOk);
  module.launches[0].kernel = "missing";
  EXPECT_THAT(refusal(), HasSubstr("CUDA_ERROR_NOT_FOUND"));
  module = CudaMatmulModule();
  module.launches[0].grid[1] = 65536;
  EXPECT_THAT(refusal(), HasSubstr("65535"));
  module.code = "no cubin";
  module.launches[0].grid[1] = 4;
  EXPECT_EQ(Run(module)->outcome, Outcome::kCompileError);
}

TEST_F(CudaProcessTest, DevicesAreListedWithWhatIsWrong) {
  target::DeviceList list = List("devices=2,throttled,ecc=3");
  HONE_ASSERT_OK_AND_ASSIGN(const auto first, list.Find("cuda"));
  EXPECT_EQ(first.name, "Emulated GPU");
  EXPECT_THAT(first.driver, HasSubstr("CUDA 12.8"));
  EXPECT_EQ(first.target.cpu, "sm_80");
  EXPECT_THAT(first.warning, AllOf(HasSubstr("temperature"), HasSubstr("3 errors")));
  EXPECT_THAT(list.Find("cuda:1"), IsOk());
  EXPECT_THAT(list.Find("cuda:2"), StatusIs(absl::StatusCode::kInvalidArgument));

  EXPECT_THAT(List("mig,name=NVIDIA A100 MIG 1g.5gb").Find("cuda")->warning, HasSubstr("MIG"));
  EXPECT_THAT(List("sm=37").Find("cuda").status().message(), HasSubstr("older than 7.5"));
  EXPECT_THAT(List("prohibited").Find("cuda").status().message(), HasSubstr("compute mode"));
  EXPECT_THAT(List("no_device").problems["cuda"], HasSubstr("CUDA_ERROR_NO_DEVICE"));
  EXPECT_THAT(List("driver=11040").problems["cuda"], HasSubstr("update NVIDIA's driver"));
  EXPECT_THAT(List("init=803").problems["cuda"], HasSubstr("restart the machine"));
}

TEST_F(CudaProcessTest, ADeviceThatCannotBeUsedEndsTheProcessWithAMessage) {
  Start("sm=37");
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 1");
  EXPECT_THAT(runner_->TakeErrorOutput(), HasSubstr("older than 7.5"));
  Start("no_device");
  EXPECT_EQ(runner_->Wait(Limit()).ToString(), "exit status 1");
  EXPECT_THAT(runner_->TakeErrorOutput(), HasSubstr("CUDA_VISIBLE_DEVICES"));
}

}  // namespace
}  // namespace hone::runner
