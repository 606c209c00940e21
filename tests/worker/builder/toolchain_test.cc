#include "worker/builder/toolchain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/target/gpu_module.h"
#include "tests/status.h"

namespace hone::builder {
namespace {

using ::testing::HasSubstr;

constexpr char kSource[] = "kernel void f(global float* a) { *a = 1; }\n";

codegen::Code OpenClCode() {
  return {.format = codegen::kOpenClSource,
          .bytes = kSource,
          .module =
              target::GpuModule{.arguments = 1, .launches = {{.kernel = "f", .grid = {9, 1, 1}}}}};
}

TEST(ToolchainTest, OpenClSourceBecomesAModule) {
  const target::Target target = *target::TargetByName("generic/opencl");
  HONE_ASSERT_OK_AND_ASSIGN(const Finished finished,
                            Finish(OpenClCode(), target, "/no/such/folder"));
  HONE_ASSERT_OK_AND_ASSIGN(const target::GpuModule module,
                            target::GpuModule::Decode(finished.binary));
  EXPECT_EQ(module.kind, target::Kind::kOpenCl);
  EXPECT_EQ(module.code, kSource);
  ASSERT_EQ(module.launches.size(), 1u);
  EXPECT_EQ(module.launches[0], OpenClCode().module->launches[0]);
  EXPECT_EQ(finished.facts.code_bytes, static_cast<int64_t>(sizeof(kSource) - 1));
  EXPECT_EQ(finished.facts.spills, 0);
}

TEST(ToolchainTest, BugsOfBackEndsAreFound) {
  const target::Target target = *target::TargetByName("generic/opencl");
  const auto refusal = [&](const codegen::Code& code) {
    const absl::Status status = Finish(code, target, "/no/such/folder").status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    return std::string(status.message());
  };
  codegen::Code code = OpenClCode();
  code.module.reset();
  EXPECT_THAT(refusal(code), HasSubstr("does not say how to launch"));
  code = OpenClCode();
  code.module->launches[0].grid[1] = 0;
  EXPECT_THAT(refusal(code), HasSubstr("\"grid\""));
  code = OpenClCode();
  code.format = "tape";
  EXPECT_THAT(refusal(code), HasSubstr("no toolchain for the format tape"));
}

}  // namespace
}  // namespace hone::builder
