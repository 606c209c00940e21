// How devices of CUDA are found and described, with a table of functions in place of a driver.
#include "common/target/cuda/detect.h"

#include <cstring>
#include <map>
#include <string>

#include "common/target/cuda/error.h"
#include "common/target/cuda/nvml.h"
#include "common/target/presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What the driver tells; tests change it.
struct Driver {
  int version = 12080;
  std::vector<std::string> names = {"NVIDIA A100-SXM4-80GB"};
  std::map<int, int> attributes = {{kMultiprocessorCount, 108},
                                   {kComputeCapabilityMajor, 8},
                                   {kComputeCapabilityMinor, 0},
                                   {kPciBusId, 0x3b},
                                   {kL2CacheSize, 41943040},
                                   {kMaxThreadsPerBlock, 1024},
                                   {kMaxSharedMemoryPerBlockOptin, 166912},
                                   {kWarpSize, 32},
                                   {kMaxThreadsPerMultiprocessor, 2048},
                                   {kMaxSharedMemoryPerMultiprocessor, 167936},
                                   {kMaxRegistersPerMultiprocessor, 65536}};
};
Driver driver;

Api Table() {
  Api api;
  api.DriverGetVersion = [](int* version) {
    *version = driver.version;
    return 0;
  };
  api.DeviceGetCount = [](int* count) {
    *count = static_cast<int>(driver.names.size());
    return 0;
  };
  api.DeviceGet = [](DeviceNumber* device, int ordinal) {
    *device = ordinal;
    return 0;
  };
  api.DeviceGetName = [](char* name, int bytes, DeviceNumber device) {
    std::strncpy(name, driver.names[device].c_str(), static_cast<size_t>(bytes));
    return 0;
  };
  api.DeviceGetUuid = [](Uuid* uuid, DeviceNumber) {
    std::memset(uuid, 0xab, sizeof(*uuid));
    return 0;
  };
  api.DeviceGetAttribute = [](int* value, int attribute, DeviceNumber) {
    const auto found = driver.attributes.find(attribute);
    if (found == driver.attributes.end()) return 1;
    *value = found->second;
    return 0;
  };
  return api;
}

class CudaDetectTest : public testing::Test {
 protected:
  CudaDetectTest() { driver = Driver(); }
  const Api api_ = Table();
};

TEST_F(CudaDetectTest, AKnownModelHasTheTargetOfItsPreset) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto devices, ListDevices(api_));
  ASSERT_EQ(devices.size(), 1u);
  const DeviceFacts& facts = devices.front();
  EXPECT_EQ(facts.name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(facts.driver, "12.8");
  EXPECT_EQ(facts.pci, "0000:3b:00.0");
  EXPECT_EQ(facts.uuid, "GPU-abababab-abab-abab-abab-abababababab");
  EXPECT_EQ(facts.problem, "");
  EXPECT_EQ(facts.target, *target::TargetByName("nvidia/a100"));
  EXPECT_THAT(facts.target.Key(), StartsWith("nvptx64-sm_80-cuda-108c-"));
}

TEST_F(CudaDetectTest, OtherDevicesAreDescribedByTheirDriver) {
  driver.names = {"NVIDIA A100-SXM4-40GB MIG 1g.5gb"};
  driver.attributes[kMultiprocessorCount] = 14;
  driver.attributes[kL2CacheSize] = 5 << 20;
  const target::Target slice = ListDevices(api_)->front().target;
  EXPECT_EQ(slice.features, std::vector<std::string>{"nvidia-a100-sxm4-40gb-mig-1g.5gb"});
  EXPECT_EQ(slice.cores, 14);
  EXPECT_EQ(slice.l2_bytes, 5 << 20);
  EXPECT_EQ(slice.gpu.shared_bytes, 166912);
  EXPECT_EQ(*target::Target::FromText(slice.ToText()), slice);
  // A card of the same name with fewer multiprocessors is another device.
  driver.names = {"NVIDIA A100 prototype"};
  EXPECT_NE(ListDevices(api_)->front().target.Key(), target::TargetByName("nvidia/a100")->Key());
}

TEST_F(CudaDetectTest, WhatADriverDoesNotTellComesFromTheCapability) {
  driver.attributes = {{kComputeCapabilityMajor, 9}, {kComputeCapabilityMinor, 0}};
  const target::Target described = *DescribeDevice(api_, 0, "unknown");
  EXPECT_EQ(described.cpu, "sm_90a");
  EXPECT_EQ(described.gpu.unit_threads, 2048);
  EXPECT_EQ(described.gpu.shared_bytes, 227 << 10);
  EXPECT_EQ(described.gpu.registers, 255);
}

TEST_F(CudaDetectTest, UnusableDevicesAreListedWithTheirProblem) {
  driver.names = {"Tesla K80", "Tesla K80"};
  driver.attributes[kComputeCapabilityMajor] = 3;
  driver.attributes[kComputeCapabilityMinor] = 7;
  HONE_ASSERT_OK_AND_ASSIGN(const auto devices, ListDevices(api_));
  EXPECT_EQ(devices.size(), 2u);
  EXPECT_THAT(devices.front().problem, AllOf(HasSubstr("3.7"), HasSubstr("older than 7.5")));
  EXPECT_THAT(FindDevice(api_, "cuda:1"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                   HasSubstr("cuda:1 (Tesla K80) cannot be used")));

  driver = Driver();
  driver.attributes[kComputeMode] = kComputeModeProhibited;
  EXPECT_THAT(ListDevices(api_)->front().problem, HasSubstr("nvidia-smi --compute-mode=0"));
}

TEST_F(CudaDetectTest, SaysWhyThereIsNoDevice) {
  driver.version = 11040;
  absl::Status none = ListDevices(api_).status();
  EXPECT_THAT(none,
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("11.4"), HasSubstr("update"))));
  driver = Driver();
  driver.names.clear();
  none = ListDevices(api_).status();
  EXPECT_THAT(none, StatusIs(absl::StatusCode::kNotFound, HasSubstr("CUDA_ERROR_NO_DEVICE")));
  none = OpenApi("libcuda-missing.so.1").status();
  EXPECT_THAT(none, StatusIs(absl::StatusCode::kNotFound, HasSubstr("install NVIDIA's driver")));
  none = OpenApi("libc.so.6").status();
  EXPECT_THAT(none, StatusIs(absl::StatusCode::kNotFound, HasSubstr("has no cuInit")));
}

TEST_F(CudaDetectTest, DevicesAreFoundByTheirNames) {
  driver.names = {"first", "second"};
  EXPECT_EQ(FindDevice(api_, "cuda")->name, "first");
  EXPECT_EQ(FindDevice(api_, "cuda:1")->name, "second");
  EXPECT_THAT(FindDevice(api_, "cuda:2"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cuda:1 (second)")));
  for (const char* name : {"", "cuda:", "cuda:-1", "cuda1", "opencl"}) {
    EXPECT_THAT(FindDevice(api_, name), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
}

TEST(CudaErrorTest, CodesHaveANameAKindAndAdvice) {
  EXPECT_THAT(ToStatus(0, "try"), IsOk());
  const struct {
    Result code;
    absl::StatusCode status;
    const char* text;
  } cases[] = {
      {1, absl::StatusCode::kInvalidArgument, "try: CUDA_ERROR_INVALID_VALUE"},
      {2, absl::StatusCode::kResourceExhausted, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, absl::StatusCode::kNotFound, "CUDA_VISIBLE_DEVICES"},
      {209, absl::StatusCode::kFailedPrecondition, "a different GPU architecture"},
      {700, absl::StatusCode::kAborted, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {719, absl::StatusCode::kAborted, "CUDA_ERROR_LAUNCH_FAILED"},
      {803, absl::StatusCode::kUnavailable, "restart the machine"},
      {999, absl::StatusCode::kUnavailable, "nvidia-smi --gpu-reset"},
      {12345, absl::StatusCode::kUnavailable, "try: CUDA error 12345"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ToStatus(c.code, "try");
    EXPECT_EQ(status.code(), c.status) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
}

TEST(NvidiaGpusTest, PresetsHaveTheLimitsOfTheirArchitecture) {
  const target::Target t4 = *target::TargetByName("nvidia/t4");
  EXPECT_EQ(t4.cpu, "sm_75");
  EXPECT_EQ(t4.gpu.unit_threads, 1024);
  EXPECT_EQ(t4.gpu.shared_bytes, 64 << 10);
  EXPECT_EQ(target::TargetByName("nvidia/l4")->gpu.shared_bytes, 99 << 10);
  EXPECT_EQ(target::TargetByName("nvidia/b200")->cpu, "sm_100a");
  // They differ in their memory alone.
  EXPECT_NE(target::TargetByName("nvidia/h100")->Key(), target::TargetByName("nvidia/h200")->Key());
  for (const target::NvidiaGpu& gpu : target::NvidiaGpus()) {
    const target::Target target = *target::TargetByName(gpu.preset);
    EXPECT_EQ(target.kind, target::Kind::kCuda);
    EXPECT_EQ(target.triple, "nvptx64-nvidia-cuda");
    EXPECT_EQ(*target::Target::FromText(target.ToText()), target);
  }
}

TEST(NvmlTest, WarnsOfWhatDisturbsMeasurements) {
  EXPECT_EQ(NvmlState().Warning(), "");
  EXPECT_EQ(NvmlState{.slowed_by = 0x1}.Warning(), "") << "an idle GPU is no problem";
  EXPECT_THAT(NvmlState({.slowed_by = 0x24}).Warning(),
              AllOf(HasSubstr("power limit"), HasSubstr("temperature")));
  EXPECT_THAT(NvmlState({.memory_errors = 3}).Warning(), HasSubstr("3 errors"));
  EXPECT_THAT(NvmlState({.mig = true}).Warning(), HasSubstr("MIG"));
}

}  // namespace
}  // namespace hone::cuda
