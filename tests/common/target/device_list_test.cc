#include "common/target/device_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
          .opencl_problem = "there is no driver"};
}

TEST(DeviceListTest, SurvivesJson) {
  for (const DeviceList& list : {TwoGpus(), NoGpu()}) {
    const auto read = DeviceList::FromJson(list.ToJson());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->devices, list.devices);
    EXPECT_EQ(read->opencl_problem, list.opencl_problem);
  }
}

TEST(DeviceListTest, NamesThatAreNotUtf8BecomeUtf8) {
  DeviceList list = TwoGpus();
  list.devices[1].name = "GPU\xff\x80";
  const auto read = DeviceList::FromJson(list.ToJson());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->devices[1].name, AllOf(HasSubstr("GPU"), HasSubstr("\xEF\xBF\xBD")));
}

TEST(DeviceListTest, OtherTextsAreRefused) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"devices": 1})", R"({"devices": [1]})", R"({"devices": [{}]})",
        R"({"devices": [{"device": "cpu", "target": "target kind=toaster"}]})"}) {
    const absl::Status status = DeviceList::FromJson(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not a list of devices")) << text;
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
      {TwoGpus(), "cuda", absl::StatusCode::kInvalidArgument, "the names are cpu, opencl"},
      {NoGpu(), "opencl", absl::StatusCode::kFailedPrecondition, "there is no driver"},
      {NoGpu(), "opencl:3", absl::StatusCode::kFailedPrecondition, "there is no driver"},
  };
  for (const auto& c : cases) {
    const absl::Status status = c.list.Find(c.name).status();
    EXPECT_EQ(status.code(), c.code) << c.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.name;
  }
}

TEST(DeviceListTest, KnowsTheNamesOfOpenClDevices) {
  for (const char* name : {"opencl", "opencl:0", "opencl:x"}) EXPECT_TRUE(NamesOpenClDevice(name));
  for (const char* name : {"", "native", "generic/opencl", "opencl-gpu-opencl-4c-01234567"}) {
    EXPECT_FALSE(NamesOpenClDevice(name)) << name;
  }
}

}  // namespace
}  // namespace hone::target
