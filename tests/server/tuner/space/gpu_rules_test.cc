// Runs the rules for GPUs on workloads of all families. The spaces keep the contracts of
// generate.h, every candidate is a launch within the limits of the target, and computes the
// workload.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/gpu_candidates.h"
#include "tests/server/tuner/space/gpu_program.h"
#include "tests/server/tuner/space/gpu_workloads.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

std::vector<std::unique_ptr<DesignSpace>> OfRules(
    const std::shared_ptr<const ir::Workload>& workload, const target::Target& target) {
  auto spaces = GenerateDesignSpaces(workload, target);
  EXPECT_THAT(spaces, IsOk());
  return spaces.ok() ? *std::move(spaces) : std::vector<std::unique_ptr<DesignSpace>>();
}

class SmallGpuWorkload : public testing::TestWithParam<const char*> {};

TEST_P(SmallGpuWorkload, EveryCandidateComputesTheWorkload) {
  ExpectRightResults(GetParam(), [](const auto& workload, const target::Target& target) {
    auto spaces = OfRules(workload, target);
    spaces.push_back(DefaultCandidate(workload, target).value());
    return spaces;
  });
}

TEST_P(SmallGpuWorkload, FewCandidatesAreInvalid) { ExpectFewInvalid(GetParam(), OfRules, 24); }

INSTANTIATE_TEST_SUITE_P(All, SmallGpuWorkload, testing::ValuesIn(kSmallGpuWorkloads), GpuTestName);

std::set<std::string> Names(const char* text, const target::Target& target) {
  std::set<std::string> names;
  auto spaces = GenerateDesignSpaces(MakeWorkload(text), target);
  EXPECT_THAT(spaces, IsOk());
  for (const auto& space : *spaces) names.insert(space->name());
  return names;
}

TEST(GpuRules, EveryFamilyHasItsRule) {
  const target::Target opencl = target::TargetByName("generic/opencl").value();
  using Set = std::set<std::string>;
  EXPECT_EQ(Names("matmul m=512 n=512 k=512", opencl),
            (Set{"tile_shared", "tile_shared_wide", "tile_direct"}));
  // Copies of windows in shared memory contain the padding.
  EXPECT_EQ(Names("conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1", opencl),
            (Set{"im2col_tile_shared", "tile_direct"}));
  EXPECT_EQ(Names("conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=0", opencl),
            (Set{"tile_shared", "tile_direct"}));
  EXPECT_EQ(Names("conv2d_nchw n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1", opencl),
            (Set{"tile_shared", "tile_direct"}));
  EXPECT_EQ(Names("matmul m=1 n=64 k=4096", opencl),
            (Set{"tile_direct", "parts_tile_direct", "threads"}));
  EXPECT_EQ(Names("depthwise_conv2d n=1 h=14 w=14 c=64 k=3 s=1 p=1", opencl), (Set{"window"}));
  EXPECT_EQ(Names("softmax m=128 n=768", opencl), (Set{"rows", "rows_inline"}));
  EXPECT_EQ(Names("reduce_sum m=1 n=4096", opencl), (Set{"rows", "parts_rows"}));
  EXPECT_EQ(Names("transpose m=64 n=64", opencl), (Set{"transpose", "plain"}));
  EXPECT_EQ(Names("add m=64 n=64", opencl), (Set{"plain"}));
}

// The instruction "tensorize" of a space's trace; "" if it has none.
std::string TensorizedBy(const char* text, const target::Target& target, absl::string_view space) {
  auto spaces = GenerateDesignSpaces(MakeWorkload(text), target);
  EXPECT_THAT(spaces, IsOk());
  for (const auto& each : *spaces) {
    if (each->name() != space) continue;
    const std::string& trace = each->text();
    const size_t at = trace.find("tensorize(");
    return at == std::string::npos ? "" : trace.substr(at, trace.find('\n', at) - at);
  }
  return "no such space";
}

TEST(GpuRules, ProductsOfBytesAreAddedByInstructions) {
  using ::testing::HasSubstr;
  const char* const product = "quantized_matmul m=512 n=512 k=512";
  for (const char* const space : {"tile_shared", "tile_shared_wide"}) {
    EXPECT_THAT(TensorizedBy(product, Sm80(), space), HasSubstr("\"dp4a_u8i8\")"));
  }
  EXPECT_THAT(TensorizedBy("quantized_conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1", Sm80(),
                           "im2col_tile_shared"),
              HasSubstr("\"dp4a_u8i8\")"));
  // The rows of B are not adjacent in memory.
  EXPECT_EQ(TensorizedBy(product, Sm80(), "tile_direct"), "");
  const char* const rows =
      "workload rows\ninput A: i8[64, 64]\ninput B: i8[64, 64]\n"
      "output C[i: 64, j: 64] = sum(k: 64) i32(A[i, k]) * i32(B[j, k])\n";
  EXPECT_THAT(TensorizedBy(rows, Sm80(), "tile_direct"), HasSubstr("\"dp4a_i8\")"));
  // Not a multiple of 4 terms; no instruction; other operations.
  EXPECT_EQ(TensorizedBy("quantized_matmul m=64 n=64 k=66", Sm80(), "tile_shared"), "");
  target::Target old = Sm80();
  old.cpu = "sm_60";
  EXPECT_EQ(TensorizedBy(product, old, "tile_shared"), "");
  EXPECT_EQ(TensorizedBy(product, target::TargetByName("generic/opencl").value(), "tile_shared"),
            "");
  target::Target opencl = target::TargetByName("generic/opencl").value();
  opencl.features = {"arm_dot"};
  EXPECT_THAT(TensorizedBy(product, opencl, "tile_shared"), HasSubstr("\"arm_dot4_u8i8\")"));
  opencl.features = {"arm_dot", "dot"};
  EXPECT_THAT(TensorizedBy(product, opencl, "tile_shared"), HasSubstr("\"dot4_u8i8\")"));
  EXPECT_EQ(TensorizedBy("matmul m=64 n=64 k=64", Sm80(), "tile_shared"), "");
  EXPECT_EQ(TensorizedBy("workload shifted\ninput A: u8[64, 64]\ninput B: i8[64, 64]\n"
                         "output C[i: 64, j: 64] = sum(k: 64) (i32(A[i, k]) - 3) * i32(B[k, j])\n",
                         Sm80(), "tile_shared"),
            "");
}

// Shared memory of Mali GPUs is no faster than their caches; only partial results of threads need
// it.
TEST(GpuRules, MaliReadsOperandsDirectly) {
  const target::Target mali = target::TargetByName("arm/mali-g610").value();
  using Set = std::set<std::string>;
  EXPECT_EQ(Names("matmul m=512 n=512 k=512", mali), (Set{"tile_direct"}));
  EXPECT_EQ(Names("transpose m=64 n=64", mali), (Set{"plain"}));
  EXPECT_EQ(Names("softmax m=128 n=768", mali), (Set{"rows", "rows_inline"}));
}

TEST(GpuRules, RulesForCpusAreNotUsed) {
  for (const char* text : {"matmul m=64 n=64 k=64", "softmax m=64 n=64", "add m=64 n=64"}) {
    HONE_ASSERT_OK_AND_ASSIGN(auto spaces, GenerateDesignSpaces(MakeWorkload(text), Sm80()));
    for (const auto& space : spaces) {
      EXPECT_EQ(space->text().find("parallel("), std::string::npos) << space->text();
      EXPECT_NE(space->text().find("blockIdx.x"), std::string::npos) << space->text();
    }
  }
}

class LargeGpuWorkload : public testing::TestWithParam<const char*> {};

TEST_P(LargeGpuWorkload, FewCandidatesAreInvalid) { ExpectFewInvalid(GetParam(), OfRules, 64); }

INSTANTIATE_TEST_SUITE_P(All, LargeGpuWorkload,
                         testing::Values("matmul m=1024 n=1024 k=1024",
                                         "matmul m=1009 n=997 k=1013", "dense m=128 n=768 k=768",
                                         "dense_relu m=512 n=512 k=512",
                                         "batch_matmul b=8 m=128 n=128 k=64",
                                         "conv2d n=1 h=14 w=14 ci=256 co=256 k=1 s=1 p=0",
                                         "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
                                         "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1",
                                         "quantized_matmul m=512 n=512 k=512",
                                         "quantized_conv2d n=1 h=14 w=14 ci=128 co=128 k=3 s=1 p=1",
                                         "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1",
                                         "max_pool2d n=1 h=112 w=112 c=64 k=3 s=2 p=1",
                                         "softmax m=1024 n=1024", "layer_norm m=128 n=768",
                                         "argmax m=256 n=1000", "transpose m=1024 n=512",
                                         "add_relu m=512 n=512", "attention b=1 h=8 s=256 d=64",
                                         // More blocks than a grid has along y and z.
                                         "batch_matmul b=70000 m=16 n=16 k=16",
                                         "depthwise_conv2d n=300 h=300 w=8 c=8 k=3 s=1 p=1"),
                         GpuTestName);

}  // namespace
}  // namespace hone::space
