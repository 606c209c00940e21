// Runs the commands of docs/tutorial/device.md for OpenCL as they stand there, with real
// measurements on the first device. Skipped on a machine without an OpenCL device.

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "tests/integration/gpu_walk.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;

class OpenClReadmeTest : public GpuWalk {
 protected:
  OpenClReadmeTest() : GpuWalk({"opencl", "opencl-", {}, {}}) {}
};

TEST_F(OpenClReadmeTest, CommandsWorkLiterally) {
  NeedDevice();
  if (IsSkipped()) return;
  const std::string page = ReadFile("docs/tutorial/device.md").value_or("");
  const size_t begin = page.find("```opencl\n");
  ASSERT_NE(begin, std::string::npos);
  const size_t first = page.find('\n', begin) + 1;
  const std::string block = page.substr(first, page.find("```", first) - first);
  for (const char* name : {"A", "B"}) {
    File(folder_, absl::StrCat(name, ".npy"), Input(name, {256, 256}, 17).Npy());
  }
  const Result result =
      RunProgram({"/bin/sh", "-c",
                  absl::StrCat("set -e; cd ", folder_.path(), "; export PATH=",
                               std::filesystem::absolute(BinDir()).string(), ":$PATH\n", block)},
                 home_.variables(), absl::Minutes(14));
  EXPECT_EQ(result.code, 0) << result.errors << result.output;
  EXPECT_THAT(result.output, ContainsRegex("__kernel.*us for each call"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "C.npy"));
}

}  // namespace
}  // namespace hone::integration
