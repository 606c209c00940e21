// What the runner makes of drivers that fail or lie: a real driver with some functions replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/target/opencl/context.h"
#include "common/target/opencl/detect.h"
#include "tests/status.h"
#include "tests/worker/runner/opencl_modules.h"
#include "worker/runner/gpu_device.h"
#include "worker/runner/gpu_probe.h"

namespace hone::runner {
namespace {

using ::testing::HasSubstr;

class OpenClContextTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoOpenCl(); !why.empty()) GTEST_SKIP() << why;
    api_ = **opencl::LoadedApi();
    HONE_ASSERT_OK_AND_ASSIGN(const auto facts, opencl::FindDevice(api_, "opencl"));
    HONE_ASSERT_OK_AND_ASSIGN(context_, opencl::OpenClContext::Create(api_, facts));
  }

  absl::StatusOr<std::unique_ptr<GpuKernel>> Load(const target::GpuModule& module) {
    return GpuKernel::Load(*context_, module, 1, [] { return absl::OkStatus(); });
  }
  std::unique_ptr<GpuBuffer> Ones(int64_t count) {
    auto buffer = GpuBuffer::Create(*context_, count * 4, 777);
    EXPECT_THAT(buffer, IsOk());
    EXPECT_TRUE((*buffer)
                    ->Write([&](void* to) { std::fill_n(static_cast<float*>(to), count, 1.0f); })
                    .ok());
    return *std::move(buffer);
  }
  // Runs the matmul on ones.
  absl::StatusOr<double> Run(int64_t count, bool flushed = false) {
    auto kernel = Load(MatmulModule());
    EXPECT_THAT(kernel, IsOk());
    const auto a = Ones(64 * 32), b = Ones(32 * 48), c = Ones(64 * 48);
    DeviceBuffer* const buffers[] = {a.get(), b.get(), c.get()};
    return (*kernel)->Run(buffers, count, flushed);
  }

  opencl::Api api_;  // a copy, which tests change
  std::unique_ptr<opencl::OpenClContext> context_;
};

TEST_F(OpenClContextTest, ADeviceThatFailsIsLost) {
  ASSERT_THAT(Run(2), IsOk());
  EXPECT_FALSE(context_->lost());
  // The first wait after a launch fails, as after a fault of a GPU.
  static decltype(api_.EnqueueNDRangeKernel) launch;
  static bool launched;
  launch = api_.EnqueueNDRangeKernel;
  launched = false;
  api_.EnqueueNDRangeKernel = [](auto... arguments) {
    launched = true;
    return launch(arguments...);
  };
  static decltype(api_.Finish) finish;
  finish = api_.Finish;
  api_.Finish = [](cl_command_queue queue) {
    const cl_int code = finish(queue);
    return launched ? CL_OUT_OF_RESOURCES : code;
  };
  EXPECT_THAT(Run(2),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("failed while it ran kernel 'matmul': CL_OUT_OF_RESOURCES")));
  EXPECT_TRUE(context_->lost());
}

TEST_F(OpenClContextTest, ARefusedLaunchIsInvalid) {
  api_.EnqueueNDRangeKernel = [](auto...) -> cl_int { return CL_INVALID_WORK_GROUP_SIZE; };
  EXPECT_THAT(Run(1), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("CL_INVALID_WORK_GROUP_SIZE")));
  EXPECT_FALSE(context_->lost());
}

TEST_F(OpenClContextTest, ABlockWithTooManyRegistersIsInvalid) {
  static decltype(api_.GetKernelWorkGroupInfo) ask;
  ask = api_.GetKernelWorkGroupInfo;
  api_.GetKernelWorkGroupInfo = [](cl_kernel kernel, cl_device_id device,
                                   cl_kernel_work_group_info property, size_t size, void* value,
                                   size_t* needed) {
    const cl_int code = ask(kernel, device, property, size, value, needed);
    if (property == CL_KERNEL_WORK_GROUP_SIZE) *static_cast<size_t*>(value) = 255;
    return code;
  };
  EXPECT_THAT(Load(MatmulModule()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("registers for only 255")));
}

TEST_F(OpenClContextTest, OutOfMemoryIsReportedAsSuch) {
  static cl_int code;
  for (const cl_int failure : {CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE}) {
    code = failure;
    api_.CreateBuffer = [](cl_context, cl_mem_flags, size_t, void*, cl_int* error) -> cl_mem {
      *error = code;
      return nullptr;
    };
    EXPECT_THAT(GpuBuffer::Create(*context_, 64, 0),
                StatusIs(absl::StatusCode::kResourceExhausted));
  }
  EXPECT_FALSE(context_->lost());
  EXPECT_THAT(GpuBuffer::Create(*context_, -1, 0), StatusIs(absl::StatusCode::kResourceExhausted));
}

// The clock of the device is believed only if it agrees with that of the host.
TEST_F(OpenClContextTest, ClocksThatLieAreIgnored) {
  static cl_ulong lie;
  static cl_int answer;
  answer = CL_SUCCESS;
  api_.GetEventProfilingInfo = [](cl_event, cl_profiling_info property, size_t, void* value,
                                  size_t*) {
    *static_cast<cl_ulong*>(value) = property == CL_PROFILING_COMMAND_START ? 1000 : lie;
    return answer;
  };
  lie = 1007;
  EXPECT_EQ(*Run(3), 7);
  EXPECT_EQ(*Run(3, /*flushed=*/true), 3 * 7);
  for (const cl_ulong impossible : {cl_ulong{1000}, cl_ulong{5}, ~cl_ulong{0}}) {
    lie = impossible;
    HONE_ASSERT_OK_AND_ASSIGN(const double ns, Run(3));
    EXPECT_GT(ns, 1000);
    EXPECT_LT(ns, 60e9);
  }
  lie = 1007;
  answer = CL_PROFILING_INFO_NOT_AVAILABLE;
  EXPECT_GT(*Run(3), 1000);
}

TEST_F(OpenClContextTest, AProbeShowsDrift) {
  // Every kernel takes this long, on the device's clock, and longer on that of the host.
  static cl_ulong ns;
  ns = 200000;
  static decltype(api_.Finish) finish;
  finish = api_.Finish;
  api_.Finish = [](cl_command_queue queue) {
    absl::SleepFor(absl::Milliseconds(1));
    return finish(queue);
  };
  api_.GetEventProfilingInfo = [](cl_event, cl_profiling_info property, size_t, void* value,
                                  size_t*) -> cl_int {
    *static_cast<cl_ulong*>(value) = property == CL_PROFILING_COMMAND_START ? 0 : ns;
    return CL_SUCCESS;
  };
  HONE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Probe> probe, MakeGpuProbe(*context_, 0));
  EXPECT_EQ(probe->Sample(), 1);
  EXPECT_EQ(probe->Drift(), 1);
  ns = 300000;
  EXPECT_EQ(probe->Sample(), 1.5);
  EXPECT_EQ(probe->Drift(), 1) << "one slow sample is a disturbance";
  for (int i = 0; i < 32; ++i) (probe)->Sample();
  EXPECT_EQ(probe->Drift(), 1.5);
  ns = 200000;
  EXPECT_EQ(probe->Sample(), 1);
  EXPECT_EQ(probe->Drift(), 1);
}

}  // namespace
}  // namespace hone::runner
