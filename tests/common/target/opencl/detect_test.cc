#include "common/target/opencl/detect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/target/device_name.h"
#include "common/target/opencl/device_info.h"
#include "common/target/opencl/error.h"
#include "tests/common/target/opencl/fake_driver.h"
#include "tests/status.h"

namespace hone::opencl {
namespace {

using target::Target;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Names(const std::vector<FakePlatform>& platforms) {
  const auto devices = ListDevices(FakeApi(platforms));
  EXPECT_THAT(devices, IsOk());
  std::vector<std::string> names;
  for (const DeviceFacts& facts : devices.value_or(std::vector<DeviceFacts>{})) {
    names.push_back(facts.name);
  }
  return names;
}

Target TargetOfOne(const FakeDevice& device) {
  const std::vector<FakePlatform> platforms = {{.name = "one", .devices = {device}}};
  const auto found = FindDevice(FakeApi(platforms), "opencl");
  EXPECT_THAT(found, IsOk());
  return found.ok() ? found->target : Target{};
}

std::string WhyNone(const std::vector<FakePlatform>& platforms, cl_int error = CL_SUCCESS) {
  const absl::Status status = FindDevice(FakeApi(platforms, error), "opencl").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  return std::string(status.message());
}

TEST(OpenClDetectTest, GpusComeFirstAndTheOrderIsFixed) {
  const FakeDevice cpu = MakeFakeDevice(CL_DEVICE_TYPE_CPU, "a cpu"),
                   npu = MakeFakeDevice(CL_DEVICE_TYPE_ACCELERATOR, "an npu"),
                   big = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "big"),
                   small = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "small");
  const FakePlatform first = {.name = "first", .devices = {cpu, small, big}},
                     second = {.name = "second", .devices = {npu, big}};
  EXPECT_THAT(Names({first, second}), ElementsAre("big", "small", "big", "an npu", "a cpu"));
  // The order of the drivers, which depends on the file system, does not matter.
  EXPECT_THAT(Names({second, first}), ElementsAre("big", "small", "big", "an npu", "a cpu"));
}

TEST(OpenClDetectTest, ATargetHasTheLimitsOfTheDevice) {
  const Target target = TargetOfOne(MakeFakeDevice(CL_DEVICE_TYPE_GPU, "Acme(R) GPU 900"));
  EXPECT_EQ(target.kind, target::Kind::kOpenCl);
  EXPECT_EQ(target.arch, "opencl");
  EXPECT_EQ(target.cpu, "acme-r-gpu-900");
  EXPECT_EQ(target.cores, 10);
  EXPECT_EQ(target.l2_bytes, 4 << 20);
  EXPECT_EQ(target.cache_line_bytes, 128);
  EXPECT_THAT(target.features, ElementsAre("fp16", "int64"));
  EXPECT_EQ(target.gpu.max_threads, 1024);
  EXPECT_EQ(target.gpu.shared_bytes, 48 << 10);
  EXPECT_TRUE(target.gpu.has_shared_memory);
  EXPECT_EQ(target.gpu.registers, 0);
  EXPECT_EQ(*Target::FromText(target.ToText()), target);
}

TEST(OpenClDetectTest, ExtensionsTellMore) {
  FakeDevice device = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "NVIDIA Something");
  device.properties[CL_DEVICE_EXTENSIONS] = std::string(
      "cl_khr_fp64 cl_khr_subgroups cl_khr_integer_dot_product "
      "cl_arm_integer_dot_product_accumulate_int8\0",
      99);
  device.properties[CL_DEVICE_PROFILE] = std::string("EMBEDDED_PROFILE\0", 17);
  device.properties[0x4000] = Bytes<cl_uint>(9);
  device.properties[0x4001] = Bytes<cl_uint>(0);
  device.properties[0x4002] = Bytes<cl_uint>(65536);
  device.properties[0x4003] = Bytes<cl_uint>(32);
  Target target = TargetOfOne(device);
  EXPECT_THAT(target.features, ElementsAre("arm_dot", "dot", "fp64", "subgroups"));
  EXPECT_EQ(target.gpu.sub_group, 32);
  EXPECT_EQ(target.gpu.registers, 255);
  EXPECT_EQ(target.gpu.unit_registers, 65536);
  EXPECT_EQ(target.gpu.unit_threads, 2048);
  device.properties[0x4000] = Bytes<cl_uint>(8);
  device.properties[0x4001] = Bytes<cl_uint>(9);
  EXPECT_EQ(TargetOfOne(device).gpu.unit_threads, 1536);
}

// Results in f16 must be those of f32 that are rounded.
TEST(OpenClDetectTest, HalvesNeedExactRounding) {
  FakeDevice device = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "Acme GPU 900");
  EXPECT_THAT(TargetOfOne(device).features, ElementsAre("fp16", "int64"));
  device.properties[0x1033] = Bytes<cl_device_fp_config>(CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST);
  EXPECT_THAT(TargetOfOne(device).features, ElementsAre("int64"));
}

// Only OpenCL C 3.0 surely has the functions of these extensions.
TEST(OpenClDetectTest, ShufflesAndDotProductsNeedOpenCl3) {
  FakeDevice device = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "Mali-G610 r0p0");
  device.properties[CL_DEVICE_EXTENSIONS] =
      std::string("cl_khr_integer_dot_product cl_khr_subgroup_shuffle\0", 51);
  EXPECT_THAT(TargetOfOne(device).features, ElementsAre("dot", "int64", "shuffle"));
  device.properties[CL_DEVICE_VERSION] = std::string("OpenCL 2.1 v1\0", 14);
  EXPECT_THAT(TargetOfOne(device).features, ElementsAre("int64"));
}

// The size of a sub-group, which kernels with shuffles rely on, must be known.
TEST(OpenClDetectTest, ShufflesNeedAKnownSubGroup) {
  const auto features = [](const std::string& name) {
    FakeDevice device = MakeFakeDevice(CL_DEVICE_TYPE_GPU, name);
    device.properties[CL_DEVICE_EXTENSIONS] =
        std::string("cl_khr_subgroups cl_khr_subgroup_shuffle\0", 41);
    return TargetOfOne(device).features;
  };
  EXPECT_THAT(features("Mali-G610 r0p0"), ElementsAre("int64", "shuffle", "subgroups"));
  EXPECT_THAT(features("Acme GPU 900"), ElementsAre("int64", "subgroups"));
}

TEST(OpenClDetectTest, TheAddressOnTheBusIsAsCudaTellsIt) {
  FakeDevice device = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "a GPU");
  const auto address = [&] {
    const std::vector<FakePlatform> platforms = {{.name = "one", .devices = {device}}};
    const Api api = FakeApi(platforms);
    const auto found = FindDevice(api, "opencl");
    EXPECT_THAT(found, IsOk());
    return PciAddress(api, found->device);
  };
  EXPECT_EQ(address(), "");
  device.properties[0x4008] = Bytes<cl_uint>(0x3b);
  EXPECT_EQ(address(), "0000:3b:00.0");
  device.properties[0x4009] = Bytes<cl_uint>(8 * 4 + 1);
  device.properties[0x400A] = Bytes<cl_uint>(2);
  EXPECT_EQ(address(), "0002:3b:04.1");
  device.properties[0x410F] = Bytes(std::array<cl_uint, 4>{1, 0xaf, 2, 1});
  EXPECT_EQ(address(), "0001:af:02.1");
}

TEST(OpenClDetectTest, AKnownGpuHasTheValuesOfItsPreset) {
  FakeDevice device = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "Mali-G610 r0p0");
  device.properties[CL_DEVICE_LOCAL_MEM_TYPE] = Bytes<cl_device_local_mem_type>(CL_GLOBAL);
  const Target target = TargetOfOne(device);
  const Target preset = *target::TargetByName("arm/mali-g610");
  EXPECT_EQ(target.cpu, "mali-g610-r0p0");
  EXPECT_EQ(target.gpu.registers, preset.gpu.registers);
  EXPECT_EQ(target.gpu.sub_group, preset.gpu.sub_group);
  EXPECT_FALSE(target.gpu.has_shared_memory);
  EXPECT_EQ(target.cores, 10);
}

TEST(OpenClDetectTest, HostileNamesAndSizesGiveUsableTargets) {
  for (const std::string& name :
       {std::string(), std::string("\n\x1b[31m=\"; rm -rf /"), std::string(5000, 'x'),
        std::string("\xff\xfe\0hidden", 9), std::string("---")}) {
    FakeDevice device = MakeFakeDevice(CL_DEVICE_TYPE_GPU, name);
    device.properties[CL_DEVICE_MAX_COMPUTE_UNITS] = Bytes<cl_uint>(0xffffffff);
    device.properties[CL_DEVICE_MAX_WORK_GROUP_SIZE] = Bytes<size_t>(0);
    device.properties[CL_DEVICE_LOCAL_MEM_SIZE] = Bytes<cl_ulong>(~cl_ulong{0});
    device.properties[CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE] = Bytes<cl_uint>(1);
    const Target target = TargetOfOne(device);
    HONE_ASSERT_OK_AND_ASSIGN(const Target back, Target::FromText(target.ToText()));
    EXPECT_EQ(back, target);
  }
  EXPECT_EQ(target::TargetWord("AMD EPYC (4)"), "amd-epyc-4");
  EXPECT_EQ(target::TargetWord("\xff"), "unknown");
  EXPECT_EQ(target::TargetWord(std::string(500, 'A')), std::string(64, 'a'));
  EXPECT_EQ(target::Printable(std::string("a\x1b[0m\xff\0b", 8), 99), "a?[0m?");
  EXPECT_EQ(target::Printable("two\nlines\t", 99, true), "two\nlines?");
}

TEST(OpenClDetectTest, ReasonsForNoDeviceAreTold) {
  constexpr cl_int kNoPlatform = -1001;
  EXPECT_THAT(WhyNone({}, kNoPlatform),
              AllOf(HasSubstr("no driver is installed"), HasSubstr("pocl-opencl-icd")));
  EXPECT_THAT(WhyNone({}), HasSubstr("no driver is installed"));
  EXPECT_THAT(WhyNone({{.name = "empty"}}), HasSubstr("the installed drivers have none"));
  EXPECT_THAT(WhyNone({{.name = "Bro\nken", .error = CL_OUT_OF_HOST_MEMORY}}),
              HasSubstr("Bro?ken: list the devices: CL_OUT_OF_HOST_MEMORY"));
  FakeDevice silent = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "silent");
  silent.error = -9999;
  EXPECT_THAT(WhyNone({{.name = "one", .devices = {silent}}}),
              HasSubstr("a device of one: ask for a property: OpenCL error -9999"));
  FakeDevice away = MakeFakeDevice(CL_DEVICE_TYPE_GPU, "away");
  away.properties[CL_DEVICE_AVAILABLE] = Bytes<cl_bool>(CL_FALSE);
  EXPECT_THAT(WhyNone({{.name = "one", .devices = {away}}}), HasSubstr("is not available"));
  EXPECT_THAT(FindDevice(FakeApi({}, CL_OUT_OF_RESOURCES), "opencl"),
              StatusIs(absl::StatusCode::kUnavailable));
  // One broken driver does not hide the others.
  const FakeDevice good = MakeFakeDevice(CL_DEVICE_TYPE_CPU, "good");
  EXPECT_THAT(Names({{.name = "broken", .error = -5}, {.name = "one", .devices = {silent, good}}}),
              ElementsAre("good"));
}

TEST(OpenClDetectTest, NamesOfDevicesAreChecked) {
  const std::vector<FakePlatform> platforms = {
      {.name = "one",
       .devices = {MakeFakeDevice(CL_DEVICE_TYPE_GPU, "a"),
                   MakeFakeDevice(CL_DEVICE_TYPE_GPU, "b")}}};
  const Api api = FakeApi(platforms);
  EXPECT_EQ(FindDevice(api, "opencl")->name, "a");
  EXPECT_EQ(FindDevice(api, "opencl:1")->name, "b");
  for (const char* const name : {"", "cuda", "opencl:", "opencl:x", "opencl:+0", "opencl: 0",
                                 "opencl:-1", "opencl1", "opencl:1:2", "opencl:99999999999"}) {
    EXPECT_THAT(FindDevice(api, name), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  EXPECT_THAT(FindDevice(api, "opencl:2"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("this machine has opencl:0 (a), opencl:1 (b)")));
}

TEST(OpenClApiTest, AMissingLibraryIsReported) {
  EXPECT_THAT(OpenApi("libhone-has-no-such-library.so"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("install ocl-icd-libopencl1")));
  EXPECT_THAT(OpenApi("libm.so.6"), StatusIs(absl::StatusCode::kNotFound,
                                             HasSubstr("libm.so.6 has no clGetPlatformIDs")));
}

// The devices of this machine.
TEST(OpenClTargetTest, NamesAreKnownToProgramsThatAddThem) {
  EXPECT_THAT(target::TargetByName("opencl"), StatusIs(absl::StatusCode::kNotFound));
  AddTargets();
  AddTargets();
  EXPECT_THAT(target::TargetByName("other").status().message(), HasSubstr("opencl, opencl:N"));
  EXPECT_THAT(target::TargetByName("other:1").status().message(), HasSubstr("unknown target"));
  EXPECT_THAT(target::TargetByName("opencl:9999"), StatusIs(absl::StatusCode::kNotFound));
  const absl::StatusOr<Target> found = target::TargetByName("opencl");
  // Other tests of OpenCL are skipped without a device. Where PoCL is installed, there is one.
  if (std::filesystem::exists("/etc/OpenCL/vendors/pocl.icd")) {
    ASSERT_THAT(found, IsOk());
  }
  if (!found.ok()) GTEST_SKIP() << found.status().message();
  EXPECT_EQ(found->kind, target::Kind::kOpenCl);
  EXPECT_EQ(*target::TargetByName("opencl:0"), *found);
  EXPECT_EQ(*Target::FromText(found->ToText()), *found);
}

}  // namespace
}  // namespace hone::opencl
