// Runs the rules for GPUs on workloads of all families. The spaces keep the contracts of
// generate.h, every candidate is a launch within the limits of the target, and computes the
// workload.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/lower/interpreter.h"
#include "common/lower/lower.h"
#include "server/space/generate.h"
#include "tests/server/space/gpu_program.h"
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

// Odd and prime sizes, sizes of one, and sizes smaller than a vector.
const char* const kSmall[] = {
    "matmul m=1 n=1 k=1",
    "matmul m=17 n=13 k=7",
    "matmul m=32 n=64 k=32",
    "matmul m=34 n=40 k=21",
    "matmul m=1 n=40 k=9",
    "matmul m=40 n=1 k=33",
    "matmul m=1 n=64 k=2048",
    "batch_matmul b=3 m=10 n=36 k=11",
    "transpose_batch_matmul b=1 s=10 h=3 d=16",
    "dense_relu m=19 n=70 k=9",
    "dense_relu m=32 n=64 k=16",
    "dense m=16 n=24 k=40",
    "conv2d n=1 h=8 w=8 ci=8 co=16 k=1 s=1 p=0",
    "conv2d n=2 h=5 w=9 ci=3 co=37 k=3 s=1 p=1",
    "conv2d n=1 h=9 w=9 ci=4 co=32 k=3 s=2 p=1",
    "conv2d_bn_relu n=1 h=7 w=7 ci=8 co=16 k=3 s=1 p=1",
    "conv2d n=1 h=7 w=7 ci=8 co=32 k=3 s=1 p=1 groups=4",
    "conv2d_transpose n=1 h=3 w=3 ci=8 co=3 k=4 s=2 p=1",
    "conv1d n=1 l=9 ci=8 co=33 k=5 s=1 p=2",
    "depthwise_conv2d n=2 h=7 w=14 c=40 k=3 s=2 p=1",
    "max_pool2d n=1 h=9 w=8 c=33 k=3 s=2 p=1",
    "avg_pool2d n=1 h=8 w=8 c=64 k=2 s=2 p=0",
    "global_avg_pool n=2 h=4 w=4 c=40",
    "reduce_sum m=1 n=3000",
    "reduce_max m=30 n=70",
    "argmax m=37 n=90",
    "argmax m=40 n=21 axis=0",
    "argmax m=1 n=3000",
    "transpose m=37 n=50",
    "workload transposed_images\n"
    "input X: f32[2, 9, 10, 11]\n"
    "input B: f32[9]\n"
    "output Y[n: 2, h: 10, w: 11, c: 9] = max(X[n, c, h, w] + B[c], 0.0)\n",
    "add m=7 n=90",
    "conv2d_nchw n=1 h=8 w=8 ci=4 co=8 k=3 s=1 p=1",
    "conv3d n=1 d=3 h=5 w=5 ci=4 co=20 k=3 s=1 p=1",
    "winograd_conv2d n=1 h=9 w=10 ci=5 co=20",
    "quantized_matmul m=16 n=32 k=24",
    "matmul m=16 n=24 k=20 dtype=f16",
    "dense_relu m=16 n=24 k=20 dtype=bf16",
    "batch_transpose b=3 m=12 n=20",
    // Rows of a table that are added up.
    "workload bag\n"
    "input T: f32[50, 40]\n"
    "input N: i32[9, 30] < 50\n"
    "output B[i: 9, j: 40] = sum(k: 30) T[at(N[i, k]), j]\n",
    // A sum over a triangle.
    "workload triangle\n"
    "input L: f32[24, 24]\n"
    "input V: f32[24, 16]\n"
    "output Y[i: 24, j: 16] = sum(k: 24 where k <= i) L[i, k] * V[k, j]\n",
    "workload short\n"
    "input A: f32[5]\n"
    "output C[i: 5] = A[i] * 2.0\n",
    // A producer to inline, and a consumer to fuse.
    "workload chain\n"
    "input A: f32[18, 10]\n"
    "input B: f32[10, 48] constant\n"
    "input bias: f32[48]\n"
    "P[i: 18, k: 10] = A[i, k] + 1.0\n"
    "C[i: 18, j: 48] = sum(k: 10) P[i, k] * B[k, j]\n"
    "E[i: 18, j: 48] = C[i, j] + bias[j]\n"
    "output D[i: 18, j: 48] = max(E[i, j], 0.0)\n",
    "workload padded\n"
    "input A: f32[16, 10]\n"
    "input B: f32[10, 50] constant\n"
    "P[i: 18, k: 10] = (A[i - 1, k] where 0 <= i - 1 < 16 else 0.5)\n"
    "C[i: 18, j: 50] = sum(k: 10) P[i, k] * B[k, j]\n"
    "output D[i: 18, j: 50] = (C[i, j] where i < 9 else 0.0)\n",
    "workload embedding\n"
    "input T: f32[30, 20] constant\n"
    "input I: i32[9] < 30\n"
    "E[i: 9, k: 20] = T[at(I[i]), k] * 2.0\n"
    "output S[i: 9] = sum(k: 20) E[i, k] * T[at(I[i]), k]\n",
    // The stages of softmax and of attention in integer arithmetic.
    "workload rows\n"
    "input X: f32[12, 96]\n"
    "M[i: 12] = max(k: 96) X[i, k]\n"
    "E[i: 12, j: 96] = X[i, j] - M[i]\n"
    "S[i: 12] = sum(k: 96) E[i, k]\n"
    "output Y[i: 12, j: 96] = E[i, j] * S[i]\n",
    "workload uneven_rows\n"
    "input X: f32[3, 5, 37]\n"
    "S[b: 3, i: 5] = sum(k: 37) X[b, i, k]\n"
    "Q[b: 3, i: 5] = sum(k: 37) (X[b, i, k] - S[b, i]) * (X[b, i, k] - S[b, i])\n"
    "output Y[b: 3, i: 5, j: 37] = X[b, i, j] * S[b, i] + Q[b, i]\n",
    "workload matrices\n"
    "input X: f32[2, 6, 48]\n"
    "S[b: 2] = sum(i: 6, j: 48) X[b, i, j] * X[b, i, j]\n"
    "output Y[b: 2] = max(S[b], 1.0)\n",
    "workload normalized\n"
    "input X: f32[12, 50]\n"
    "S[i: 12] = sum(k: 50) X[i, k]\n"
    "(V, I)[i: 12] = argmin(k: 50) (X[i, k] - S[i], i32(index(k)))\n"
    "output Y[i: 12] = V[i] + f32(I[i])\n",
    "workload weighted_rows\n"
    "input Q: f32[2, 19, 20]\n"
    "input K: f32[2, 37, 20]\n"
    "input V: f32[2, 37, 24]\n"
    "Scores[b: 2, i: 19, j: 37] = sum(d: 20) Q[b, i, d] * K[b, j, d]\n"
    "Max[b: 2, i: 19] = max(j: 37) Scores[b, i, j]\n"
    "E[b: 2, i: 19, j: 37] = Scores[b, i, j] - Max[b, i]\n"
    "Sum[b: 2, i: 19] = sum(j: 37) E[b, i, j]\n"
    "Values[b: 2, i: 19, d: 24] = sum(j: 37) E[b, i, j] * V[b, j, d]\n"
    "output Y[b: 2, i: 19, d: 24] = Values[b, i, d] + Sum[b, i]\n",
    "workload column_sums\n"
    "input A: f32[50, 70]\n"
    "S[j: 70] = sum(i: 50) A[i, j]\n"
    "output C[j: 70] = max(S[j], 0.0)\n",
};

// Values as the scalars that the interpreter of lowered programs takes.
std::vector<ir::Scalars> Exact(const ir::Workload& workload,
                               const std::vector<ir::BufferId>& tensors,
                               const std::vector<ir::Values>& values) {
  std::vector<ir::Scalars> exact;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ir::Scalars& scalars = exact.emplace_back();
    for (const double value : values[i])
      scalars.push_back(ir::CastTo(workload.tensors[tensors[i]].dtype, ir::Scalar(value)));
  }
  return exact;
}

// Lowers a candidate and runs its threads in two orders, within the limits that lowering counts. Returns what is wrong, or "".
std::string ProblemOfLowered(const ir::Program& program, const target::Target& target,
                             const ir::Workload& workload,
                             const std::vector<ir::Scalars>& inputs,
                             const std::vector<ir::Scalars>& wanted) {
  const auto lowered = lower::Lower(program, target);
  if (!lowered.ok()) return lowered.status().ToString();
  for (const lower::LoweredKernel& kernel : lowered->kernels) {
    const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    if (threads > target.gpu.max_threads) return absl::StrCat(threads, " threads");
    if (kernel.shared_bytes > target.gpu.shared_bytes)
      return absl::StrCat(kernel.shared_bytes, " bytes of shared memory");
  }
  for (const lower::ThreadOrder order : {lower::ThreadOrder::kBackward,
                                         lower::ThreadOrder::kShuffled}) {
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
  const std::vector<ir::Scalars> exact_inputs = Exact(*workload, workload->Inputs(), inputs);
  const std::vector<ir::Scalars> exact = Exact(*workload, workload->Outputs(), wanted);
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
        ASSERT_EQ(*computed, wanted) << *space->ConcreteTraceText(decisions) << program->ToText();
        ASSERT_EQ(ProblemOfLowered(*program, target, *workload, exact_inputs, exact), "")
            << target.cpu << " " << *space->ConcreteTraceText(decisions) << program->ToText();
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
      }
    }
    EXPECT_LE(invalid * 50, tried) << target.cpu << ": " << failures.begin()->first;
  }
}

TEST_P(SmallGpuWorkload, FewCandidatesAreInvalid) { ExpectFewInvalid(GetParam(), 24); }

INSTANTIATE_TEST_SUITE_P(All, SmallGpuWorkload, testing::ValuesIn(kSmall), NameOf);

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
  EXPECT_EQ(Names("matmul m=1 n=64 k=4096", opencl), (Set{"tile_direct", "parts_tile_direct"}));
  EXPECT_EQ(Names("depthwise_conv2d n=1 h=14 w=14 c=64 k=3 s=1 p=1", opencl), (Set{"window"}));
  EXPECT_EQ(Names("softmax m=128 n=768", opencl), (Set{"rows", "rows_inline"}));
  EXPECT_EQ(Names("reduce_sum m=1 n=4096", opencl), (Set{"rows", "parts_rows"}));
  EXPECT_EQ(Names("transpose m=64 n=64", opencl), (Set{"transpose", "plain"}));
  EXPECT_EQ(Names("add m=64 n=64", opencl), (Set{"plain"}));
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
                                         "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1",
                                         "max_pool2d n=1 h=112 w=112 c=64 k=3 s=2 p=1",
                                         "softmax m=1024 n=1024", "layer_norm m=128 n=768",
                                         "argmax m=256 n=1000", "transpose m=1024 n=512",
                                         "add_relu m=512 n=512",
                                         "attention b=1 h=8 s=256 d=64",
                                         // More blocks than a grid has along y and z.
                                         "batch_matmul b=70000 m=16 n=16 k=16",
                                         "depthwise_conv2d n=300 h=300 w=8 c=8 k=3 s=1 p=1"),
                         NameOf);

}  // namespace
}  // namespace hone::space
