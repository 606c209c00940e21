// The runtime's driver of OpenCL finds the devices that everything else finds.

#include <dlfcn.h>

#include "client/network/runtime/gpu_driver.h"
#include "common/target/opencl/detect.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/target/opencl/fake_driver.h"
#include "tests/status.h"

namespace hone::opencl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OpenClDriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    constexpr char kLibrary[] = FAKE_OPENCL_DIR "/libOpenCL.so.1";
    HONE_ASSERT_OK_AND_ASSIGN(api_, OpenApi(kLibrary));
    void* const library = dlopen(kLibrary, RTLD_NOW);
    use_ = reinterpret_cast<decltype(use_)>(dlsym(library, "hone_fake_opencl_use"));
    opened_ = reinterpret_cast<decltype(opened_)>(dlsym(library, "hone_fake_opencl_opened"));
    ASSERT_TRUE(use_ != nullptr && opened_ != nullptr);
  }

  // Opens each device that is listed by its number. Returns their names.
  std::vector<std::string> OpenAll(const std::vector<FakePlatform>& platforms) {
    use_(&platforms);
    const auto listed = ListDevices(api_);
    const std::vector<DeviceFacts> devices = listed.value_or(std::vector<DeviceFacts>{});
    std::vector<std::string> names;
    for (size_t n = 0; n <= devices.size(); ++n) {
      HoneGpu* gpu = nullptr;
      const hone_network_status status =
          hone_opencl_driver.open(static_cast<int32_t>(n), &gpu, &limits_);
      if (n == devices.size()) {
        EXPECT_EQ(status, HONE_NETWORK_DEVICE) << "there are more than are listed";
        break;
      }
      EXPECT_EQ(status, HONE_NETWORK_OK) << n << ": " << hone_network_error();
      if (status != HONE_NETWORK_OK) break;
      EXPECT_EQ(opened_(), devices[n].device) << n << ": " << devices[n].name;
      EXPECT_EQ(limits_.device, devices[n].name);
      names.emplace_back(limits_.device);
      hone_opencl_driver.close(gpu);
    }
    return names;
  }

  Api api_;
  void (*use_)(const std::vector<FakePlatform>*) = nullptr;
  cl_device_id (*opened_)() = nullptr;
  HoneGpuLimits limits_ = {};
};

FakeDevice Gpu(const std::string& name) { return MakeFakeDevice(CL_DEVICE_TYPE_GPU, name); }

TEST_F(OpenClDriverTest, DevicesOfSeveralDriversHaveTheListedNumbers) {
  const FakePlatform first = {.name = "first",
                              .devices = {MakeFakeDevice(CL_DEVICE_TYPE_CPU, "a cpu"), Gpu("small"),
                                          Gpu("big"), Gpu("big")}},
                     second = {.name = "second",
                               .devices = {MakeFakeDevice(CL_DEVICE_TYPE_ACCELERATOR, "an npu"),
                                           Gpu("big")}},
                     none = {.name = "none"},
                     broken = {.name = "broken", .error = CL_OUT_OF_HOST_MEMORY};
  EXPECT_THAT(OpenAll({second, none, first, broken}),
              ElementsAre("big", "big", "small", "big", "an npu", "a cpu"));
  EXPECT_THAT(OpenAll({broken, first, second}),
              ElementsAre("big", "big", "small", "big", "an npu", "a cpu"));
  EXPECT_THAT(OpenAll({none, broken}), ElementsAre());
  EXPECT_THAT(hone_network_error(), HasSubstr("no driver has one"));
}

TEST_F(OpenClDriverTest, OddNamesHaveTheListedOrder) {
  const std::string same(128, 'm');
  EXPECT_THAT(OpenAll({{.name = "one",
                        .devices = {Gpu(same + "z"), Gpu(same + "a"), Gpu("\n\xff"), Gpu("  x "),
                                    Gpu("z"), Gpu("")}}}),
              ElementsAre("", "??", same, same, "x", "z"));
  EXPECT_THAT(OpenAll({{.name = std::string(500, 'b'), .devices = {Gpu("z")}},
                       {.name = " a\x01", .devices = {Gpu("y")}}}),
              ElementsAre("y", "z"));
}

TEST_F(OpenClDriverTest, DevicesThatAreNotListedHaveNoNumber) {
  FakeDevice silent = Gpu("silent"), away = Gpu("away"), no_compiler = Gpu("no compiler"),
             no_vendor = Gpu("no vendor"), no_extensions = Gpu("no extensions");
  silent.error = -9999;
  away.properties[CL_DEVICE_AVAILABLE] = Bytes<cl_bool>(CL_FALSE);
  no_compiler.properties[CL_DEVICE_COMPILER_AVAILABLE] = Bytes<cl_bool>(CL_FALSE);
  no_vendor.properties.erase(CL_DEVICE_VENDOR);
  no_extensions.properties.erase(CL_DEVICE_EXTENSIONS);
  EXPECT_THAT(
      OpenAll({{.name = "one",
                .devices = {silent, away, no_compiler, no_vendor, no_extensions, Gpu("usable")}}}),
      ElementsAre("usable"));
}

TEST_F(OpenClDriverTest, TellsTheLimitsOfTheDevice) {
  FakeDevice device = Gpu("a GPU");
  EXPECT_THAT(OpenAll({{.name = "one", .devices = {device}}}), ElementsAre("a GPU"));
  EXPECT_EQ(limits_.threads, 1024u);
  EXPECT_EQ(limits_.shared_bytes, 48u << 10);
  EXPECT_THAT(limits_.block, ElementsAre(1, 1, 1)) << "the driver does not tell them";
  EXPECT_EQ(limits_.part_bytes, 1u);
  device.properties[CL_DEVICE_MAX_WORK_ITEM_SIZES] = Bytes(std::array<size_t, 3>{512, 256, 64});
  device.properties[CL_DEVICE_MEM_BASE_ADDR_ALIGN] = Bytes<cl_uint>(4096);
  EXPECT_THAT(OpenAll({{.name = "one", .devices = {device}}}), ElementsAre("a GPU"));
  EXPECT_THAT(limits_.block, ElementsAre(512, 256, 64));
  EXPECT_THAT(limits_.grid, ElementsAre(0xffffffffu, 0xffffffffu, 0xffffffffu));
  EXPECT_EQ(limits_.part_bytes, 512u);
}

}  // namespace
}  // namespace hone::opencl
