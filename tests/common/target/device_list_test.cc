#include "common/target/device_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::target {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Target OpenCl(const std::string& cpu) {
  Target target = *TargetByName("generic/opencl");
  target.cpu = cpu;
  return target;
}

DeviceList TwoGpus() {
  return {.devices = {{"cpu", "A CPU", "", *TargetByName("x86-avx2")},
                      {"opencl:0", "A GPU", "Vendor, driver 1.2", OpenCl("first")},
                      {"opencl:1", "B \"GPU\"\n", "Vendor, driver 1.2", OpenCl("second")}}};
}

DeviceList NoGpu() {
  return {.devices = {{"cpu", "A CPU", "", *TargetByName("x86-avx2")}},
          .problems = {{"opencl", "there is no driver"}}};
}

DeviceList OldGpu() {
  return {.devices = {{"cpu", "A CPU", "", *TargetByName("x86-avx2")},
                      {.device = "cuda:0", .name = "An old GPU", .problem = "it is too old"}}};
}

TEST(DeviceListTest, SurvivesJson) {
  for (const DeviceList& list : {TwoGpus(), NoGpu(), OldGpu()}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto read, DeviceList::FromJson(list.ToJson()));
    EXPECT_EQ(read.devices, list.devices);
    EXPECT_EQ(read.problems, list.problems);
  }
}

TEST(DeviceListTest, NamesThatAreNotUtf8BecomeUtf8) {
  DeviceList list = TwoGpus();
  list.devices[1].name = "GPU\xff\x80";
  HONE_ASSERT_OK_AND_ASSIGN(const auto read, DeviceList::FromJson(list.ToJson()));
  EXPECT_THAT(read.devices[1].name, AllOf(HasSubstr("GPU"), HasSubstr("\xEF\xBF\xBD")));
}

TEST(DeviceListTest, OtherTextsAreRefused) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"devices": 1})", R"({"devices": [1]})", R"({"devices": [{}]})",
        R"({"devices": [{"device": "cpu", "target": "target kind=toaster"}]})"}) {
    EXPECT_THAT(DeviceList::FromJson(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a list of devices")))
        << text;
  }
}

TEST(DeviceListTest, FindsDevicesByTheirNames) {
  const DeviceList list = TwoGpus();
  EXPECT_EQ(list.Find("cpu")->device, "cpu");
  EXPECT_EQ(list.Find("opencl")->target.cpu, "first");
  EXPECT_EQ(list.Find("opencl:0")->target.cpu, "first");
  EXPECT_EQ(list.Find("opencl:1")->target.cpu, "second");
}

TEST(DeviceListTest, SaysWhyADeviceIsNotFound) {
  const struct {
    DeviceList list;
    const char* name;
    absl::StatusCode code;
    const char* message;
  } cases[] = {
      {TwoGpus(), "opencl:2", absl::StatusCode::kInvalidArgument, "opencl:0 (A GPU)"},
      {TwoGpus(), "opencl:", absl::StatusCode::kInvalidArgument, "not the name of a device"},
      {TwoGpus(), "opencl:-1", absl::StatusCode::kInvalidArgument, "not the name of a device"},
      {TwoGpus(), "opencl:one", absl::StatusCode::kInvalidArgument, "opencl:N"},
      {TwoGpus(), "opencl1", absl::StatusCode::kInvalidArgument, "not the name of a device"},
      {TwoGpus(), "metal", absl::StatusCode::kInvalidArgument, "the names are cpu, cuda"},
      {NoGpu(), "opencl", absl::StatusCode::kFailedPrecondition, "there is no driver"},
      {NoGpu(), "opencl:3", absl::StatusCode::kFailedPrecondition, "there is no driver"},
      {NoGpu(), "cuda:0", absl::StatusCode::kFailedPrecondition, "there is no CUDA device"},
      {OldGpu(), "cuda", absl::StatusCode::kFailedPrecondition, "cannot be used: it is too old"},
  };
  for (const auto& c : cases) {
    const absl::Status status = c.list.Find(c.name).status();
    EXPECT_EQ(status.code(), c.code) << c.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.name;
  }
}

TEST(DeviceListTest, KnowsTheInterfaceOfNamesAndKeys) {
  for (const char* name : {"opencl", "opencl:0", "opencl:x"}) {
    ASSERT_NE(InterfaceOfDevice(name), nullptr) << name;
    EXPECT_EQ(InterfaceOfDevice(name)->kind, Kind::kOpenCl);
  }
  EXPECT_EQ(InterfaceOfDevice("cuda:1")->kind, Kind::kCuda);
  for (const char* name : {"", "native", "generic/opencl", "opencl-gpu-opencl-4c-01234567"}) {
    EXPECT_EQ(InterfaceOfDevice(name), nullptr) << name;
  }
  EXPECT_EQ(InterfaceOfKey("opencl-mali-g52-opencl-2c-01234567")->kind, Kind::kOpenCl);
  EXPECT_EQ(InterfaceOfKey(TargetByName("nvidia/a100")->Key())->kind, Kind::kCuda);
  for (const std::string& key : {TargetByName("x86-avx2")->Key(), std::string("opencl:0"),
                                 std::string("a-opencl-2c-0123456"), std::string()}) {
    EXPECT_EQ(InterfaceOfKey(key), nullptr) << key;
  }
}

}  // namespace
}  // namespace hone::target
