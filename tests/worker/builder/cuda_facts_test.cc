#include "worker/builder/cuda_facts.h"

#include "common/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::builder {
namespace {

using ::testing::HasSubstr;

// Of NVRTC 12.9; 13 writes the same.
constexpr char kLog[] = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'pack' for 'sm_75'
ptxas info    : Function properties for pack
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 6 registers, used 0 barriers, 368 bytes cmem[0]
ptxas info    : Compile time = 6.328 ms
ptxas info    : Compiling entry function 'product' for 'sm_75'
ptxas info    : Function properties for product
ptxas         .     400 bytes stack frame, 24 bytes spill stores, 36 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 400 bytes cumulative stack size, 2048 bytes smem, 384 bytes cmem[0]
)";

TEST(CudaFactsTest, ReadsTheAssemblersLog) {
  const auto facts = ReadCudaFacts(kLog);
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts.at("pack"), (CudaKernelFacts{.registers = 6}));
  EXPECT_EQ(facts.at("product"),
            (CudaKernelFacts{
                .registers = 64, .spill_bytes = 36, .stack_bytes = 400, .shared_bytes = 2048}));
  EXPECT_TRUE(ReadCudaFacts("").empty());
  EXPECT_TRUE(ReadCudaFacts("Used many registers").empty());
}

// As NVIDIA's occupancy calculator says.
TEST(CudaFactsTest, OccupancyIsLimitedByEachResource) {
  const target::GpuLimits a100 = target::TargetByName("nvidia/a100")->gpu;
  const target::GpuLaunch launch{.kernel = "k", .block = {256, 1, 1}};
  EXPECT_EQ(Occupancy(launch, {.registers = 32}, a100), 1);
  EXPECT_EQ(Occupancy(launch, {.registers = 64}, a100), 0.5);
  EXPECT_EQ(Occupancy(launch, {.registers = 255}, a100), 0.125);
  EXPECT_EQ(Occupancy(launch, {.registers = 32, .shared_bytes = 80 << 10}, a100), 0.25);
  const target::GpuLaunch small{.kernel = "k", .block = {32, 1, 1}};
  EXPECT_EQ(Occupancy(small, {.registers = 32}, a100), 0.5) << "at most 32 blocks";
  const target::GpuLaunch large{.kernel = "k", .block = {1024, 1, 1}};
  EXPECT_EQ(Occupancy(large, {.registers = 128}, a100), 0);
}

TEST(CudaFactsTest, RefusesWhatNoMultiprocessorCanRun) {
  const target::GpuLimits t4 = target::TargetByName("nvidia/t4")->gpu;
  target::GpuLaunch launch{.kernel = "k", .block = {1024, 1, 1}};
  EXPECT_THAT(CheckCudaLaunch(launch, {.registers = 64}, t4), IsOk());
  absl::Status refused = CheckCudaLaunch(launch, {.registers = 72}, t4);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("72 registers in each of 1024 threads")));
  launch.shared_bytes = 65 << 10;
  refused = CheckCudaLaunch(launch, {.registers = 32}, t4);
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a block may use 65536")));
}

}  // namespace
}  // namespace hone::builder
