// Runs the rules for GPUs on workloads of all families. The spaces keep the contracts of
// generate.h, every candidate is a launch within the limits of the target, and computes the
// workload.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/lower/interpreter.h"
#include "common/lower/lower.h"
#include "server/space/generate.h"
#include "tests/server/space/exact_values.h"
#include "tests/server/space/gpu_program.h"
#include "tests/server/space/gpu_workloads.h"
#include "tests/server/space/workloads.h"

namespace hone::space {
namespace {

std::vector<target::Target> Targets() {
  return {target::TargetByName("generic/opencl").value(),
          target::TargetByName("arm/mali-g610").value(), Sm80()};
}

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = absl::StrCat(info.index, "_");
  for (char c : std::string(info.param).substr(0, 40)) {
    if (c == '\n') break;
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name;
}

// Returns what exceeds the limits of the target in a lowered program, or "".
std::string BeyondLimits(const lower::LoweredProgram& lowered, const target::Target& target) {
  for (const lower::LoweredKernel& kernel : lowered.kernels) {
    const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    if (threads > target.gpu.max_threads) return absl::StrCat(threads, " threads");
    if (kernel.shared_bytes > target.gpu.shared_bytes)
      return absl::StrCat(kernel.shared_bytes, " bytes of shared memory");
    if (std::max(kernel.grid[1], kernel.grid[2]) > 65535) return "a grid too large";
  }
  return "";
}

// Lowers a candidate and runs its threads in two orders. Returns what is wrong, or "".
std::string ProblemOfLowered(const ir::Program& program, const target::Target& target,
                             const ir::Workload& workload, const std::vector<ir::Scalars>& inputs,
                             const std::vector<ir::Scalars>& wanted) {
  const auto lowered = lower::Lower(program, target);
  if (!lowered.ok()) return lowered.status().ToString();
  if (const std::string beyond = BeyondLimits(*lowered, target); !beyond.empty()) return beyond;
  for (const lower::ThreadOrder order :
       {lower::ThreadOrder::kBackward, lower::ThreadOrder::kShuffled}) {
    const auto computed = lower::Interpret(*lowered, workload, inputs, int64_t{1} << 32, order);
    if (!computed.ok()) return computed.status().ToString();
    if (*computed != wanted) return "the results differ";
  }
  return "";
}

class SmallGpuWorkload : public testing::TestWithParam<const char*> {};

TEST_P(SmallGpuWorkload, EveryCandidateComputesTheWorkload) {
  constexpr int kCandidates = 4;
  const auto workload = MakeWorkload(GetParam());
  const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
  const std::vector<ir::Values> wanted = ir::Interpret(*workload, inputs).value();
  const std::vector<ir::Scalars> exact_inputs = ExactValues(*workload, workload->Inputs(), inputs);
  const std::vector<ir::Scalars> exact = ExactValues(*workload, workload->Outputs(), wanted);
  for (const target::Target& target : Targets()) {
    auto spaces = GenerateDesignSpaces(workload, target);
    ASSERT_TRUE(spaces.ok()) << spaces.status();
    spaces->push_back(DefaultCandidate(workload, target).value());
    for (const auto& space : *spaces) {
      std::vector<int64_t> decisions;
      for (uint64_t i = 0; i < kCandidates; ++i) {
        Rng rng(11, i);
        auto drawn = i % 2 == 0 ? space->Sample(rng) : space->Mutate(decisions, rng);
        if (i % 2 == 1 && absl::IsResourceExhausted(drawn.status())) continue;
        ASSERT_TRUE(drawn.ok()) << space->name() << ": " << drawn.status();
        decisions = *drawn;
        auto program = space->Replay(decisions);
        if (!program.ok()) continue;  // FewCandidatesAreInvalid counts these
        const absl::Status legal = CheckGpuProgram(*program, target);
        ASSERT_TRUE(legal.ok()) << legal << program->ToText();
        auto computed = ir::Interpret(*program, inputs);
        ASSERT_TRUE(computed.ok()) << computed.status() << program->ToText();
        ASSERT_EQ(*computed, wanted)
            << schedule::TraceFileText(*space->workload(), space->trace(), decisions)
            << program->ToText();
        ASSERT_EQ(ProblemOfLowered(*program, target, *workload, exact_inputs, exact), "")
            << target.cpu << " "
            << schedule::TraceFileText(*space->workload(), space->trace(), decisions)
            << program->ToText();
      }
    }
  }
}

// Draws candidates of all spaces; counts those that do not replay, and checks the limits of the
// others.
void ExpectFewInvalid(const char* text, int candidates) {
  const auto workload = MakeWorkload(text);
  for (const target::Target& target : Targets()) {
    auto spaces = GenerateDesignSpaces(workload, target);
    ASSERT_TRUE(spaces.ok()) << spaces.status();
    int tried = 0, invalid = 0;
    std::map<std::string, int> failures;
    for (const auto& space : *spaces) {
      for (int i = 0; i < candidates; ++i) {
        Rng rng(13, i);
        const auto drawn = space->Sample(rng);
        ASSERT_TRUE(drawn.ok()) << target.cpu << " " << space->name() << ": " << drawn.status();
        ASSERT_TRUE(space->IsLegal(*drawn)) << space->name();
        const auto program = space->Replay(*drawn);
        ++tried;
        if (!program.ok()) {
          ++invalid;
          ++failures[absl::StrCat(space->name(), ": ", program.status().message())];
          continue;
        }
        const absl::Status legal = CheckGpuProgram(*program, target);
        ASSERT_TRUE(legal.ok()) << target.cpu << " " << space->name() << ": " << legal
                                << program->ToText();
        const auto lowered = lower::Lower(*program, target);
        ASSERT_TRUE(lowered.ok()) << lowered.status() << program->ToText();
        ASSERT_EQ(BeyondLimits(*lowered, target), "") << target.cpu << " " << program->ToText();
      }
    }
    EXPECT_LE(invalid * 50, tried) << target.cpu << ": " << failures.begin()->first;
  }
}

TEST_P(SmallGpuWorkload, FewCandidatesAreInvalid) { ExpectFewInvalid(GetParam(), 24); }

INSTANTIATE_TEST_SUITE_P(All, SmallGpuWorkload, testing::ValuesIn(kSmallGpuWorkloads), NameOf);

std::set<std::string> Names(const char* text, const target::Target& target) {
  std::set<std::string> names;
  auto spaces = GenerateDesignSpaces(MakeWorkload(text), target);
  EXPECT_TRUE(spaces.ok()) << spaces.status();
  for (const auto& space : *spaces) names.insert(space->name());
  return names;
}

TEST(GpuRules, EveryFamilyHasItsRule) {
  const target::Target opencl = target::TargetByName("generic/opencl").value();
  using Set = std::set<std::string>;
  EXPECT_EQ(Names("matmul m=512 n=512 k=512", opencl),
            (Set{"tile_shared", "tile_shared_wide", "tile_direct"}));
  EXPECT_EQ(Names("conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1", opencl),
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
  EXPECT_TRUE(spaces.ok()) << spaces.status();
  for (const auto& each : *spaces) {
    if (each->name() != space) continue;
    const std::string& trace = each->text();
    const size_t at = trace.find("tensorize(");
    return at == std::string::npos ? "" : trace.substr(at, trace.find('\n', at) - at);
  }
  return "no such space";
}

TEST(GpuRules, ProductsOfBytesAreAddedByDp4a) {
  using ::testing::HasSubstr;
  const char* const product = "quantized_matmul m=512 n=512 k=512";
  for (const char* const space : {"tile_shared", "tile_shared_wide"}) {
    EXPECT_THAT(TensorizedBy(product, Sm80(), space), HasSubstr("\"dp4a_u8i8\")"));
  }
  EXPECT_THAT(
      TensorizedBy("quantized_conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1", Sm80(), "tile_shared"),
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
    auto spaces = GenerateDesignSpaces(MakeWorkload(text), Sm80());
    ASSERT_TRUE(spaces.ok()) << spaces.status();
    for (const auto& space : *spaces) {
      EXPECT_EQ(space->text().find("parallel("), std::string::npos) << space->text();
      EXPECT_NE(space->text().find("blockIdx.x"), std::string::npos) << space->text();
    }
  }
}

class LargeGpuWorkload : public testing::TestWithParam<const char*> {};

TEST_P(LargeGpuWorkload, FewCandidatesAreInvalid) { ExpectFewInvalid(GetParam(), 64); }

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
                         NameOf);

}  // namespace
}  // namespace hone::space
