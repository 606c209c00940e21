// Families of workloads on AArch64, at small sizes: schedules of the design spaces compute what the
// interpreter does, under emulation.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

const char* const kFamilies[] = {
    "matmul m=33 n=28 k=19",
    "matmul m=1 n=40 k=70",
    "dense m=9 n=24 k=32",
    "batch_matmul b=2 m=12 n=20 k=16",
    "transpose_batch_matmul b=1 s=10 h=3 d=8",
    "conv1d n=1 l=20 ci=6 co=12 k=3 s=2 p=1",
    "conv2d n=1 h=9 w=9 ci=3 co=16 k=7 s=2 p=3",
    "conv2d n=1 h=8 w=10 ci=8 co=12 k=3 s=1 p=1",
    "conv2d_bn_relu n=1 h=6 w=6 ci=8 co=16 k=3 s=1 p=1",
    "conv2d n=1 h=8 w=8 ci=8 co=8 k=3 s=1 p=2 dil=2",
    "conv2d n=1 h=8 w=8 ci=8 co=16 k=3 s=2 p=1 groups=4",
    "conv3d n=1 d=3 h=5 w=5 ci=4 co=8 k=1 s=1 p=0",
    "depthwise_conv2d n=1 h=9 w=9 c=12 k=3 s=1 p=1",
    "conv2d_transpose n=1 h=4 w=4 ci=8 co=6 k=4 s=2 p=1",
    "capsule_conv2d n=1 h=5 w=5 ci=4 co=4 k=3 s=2 p=1",
    "max_pool2d n=1 h=8 w=8 c=8 k=3 s=2 p=1",
    "global_avg_pool n=1 h=4 w=4 c=24",
    "norm b=1 m=8 n=24",
    "softmax m=6 n=40",
    "layer_norm m=5 n=36",
    "argmax m=9 n=31",
    "attention b=1 h=2 s=9 d=8",
    // Instructions compute these, where the CPU has them.
    "quantized_dense m=14 n=20 k=24",
    "quantized_matmul m=6 n=12 k=40",
    "quantized_matmul m=15 n=23 k=29",
    "quantized_conv2d n=1 h=7 w=9 ci=8 co=12 k=3 s=1 p=1",
    "quantized_conv2d n=1 h=9 w=8 ci=16 co=8 k=1 s=2 p=0",
    "quantized_conv2d n=1 h=9 w=9 ci=3 co=16 k=5 s=2 p=2",
    "workload uneven\n"
    "input A: u8[13, 31]\n"
    "input B: i8[31, 23] constant\n"
    "input S: f32[23] constant\n"
    "C[i: 13, j: 23] = sum(k: 31) i32(A[i, k]) * i32(B[k, j])\n"
    "output D[i: 13, j: 23] = max(f32(C[i, j]) * S[j], 0.0)\n",
    "workload bf16_product\n"
    "input A: bf16[18, 24]\n"
    "input B: bf16[24, 20] constant\n"
    "C[i: 18, j: 20] = sum(k: 24) f32(A[i, k]) * f32(B[k, j])\n"
    "output D[i: 18, j: 20] = max(C[i, j], 0.0)\n",
};

struct Case {
  const char* preset;
  int candidates;  // per design space
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.preset; }

class ArmFamilies : public testing::TestWithParam<Case> {};

TEST_P(ArmFamilies, CandidatesComputeTheWorkload) {
  const target::Target target = Preset(GetParam().preset);
  int checked = 0, refused = 0;
  for (const char* const text : kFamilies) {
    const auto workload = space::MakeWorkload(text);
    ASSERT_NE(workload, nullptr) << text;
    const std::vector<ir::Values> inputs = space::SmallIntegers(*workload, 5);
    const auto expected = ir::Interpret(*workload, inputs);
    ASSERT_THAT(expected, IsOk()) << text;
    const auto spaces = space::GenerateDesignSpaces(workload, target, 0);
    ASSERT_THAT(spaces, IsOk()) << text;
    for (const auto& space : *spaces) {
      for (int candidate = 0; candidate < GetParam().candidates; ++candidate) {
        Rng rng(23, candidate);
        const auto drawn = space->Sample(rng);
        ASSERT_THAT(drawn, IsOk()) << text;
        const auto program = space->Replay(*drawn);
        if (!program.ok()) {
          ++refused;
          continue;
        }
        const auto compiled = CompiledProgram::Load(*program, target);
        // A candidate may be too large to be compiled.
        if (absl::StrContains(compiled.status().message(), "the unrolled code")) {
          ++refused;
          continue;
        }
        ASSERT_THAT(compiled, IsOk()) << text;
        const auto actual = (*compiled)->Run(inputs);
        ASSERT_THAT(actual, IsOk()) << text;
        for (size_t t = 0; t < expected->size(); ++t) {
          for (size_t e = 0; e < (*expected)[t].size(); ++e) {
            const double want = (*expected)[t][e];
            ASSERT_NEAR((*actual)[t][e], want, 1e-5 * (1 + std::abs(want)))
                << text << ", " << space->name() << ", element " << e << "\n"
                << program->ToText();
          }
        }
        ++checked;
      }
    }
  }
  std::cout << checked << " candidates agree, " << refused << " were refused\n";
  EXPECT_GE(checked, 10 * refused);
}

INSTANTIATE_TEST_SUITE_P(Machines, ArmFamilies,
                         testing::Values(Case{"arm/cortex-a76", 2}, Case{"arm/neoverse-v1", 1}));

}  // namespace
}  // namespace hone::codegen
