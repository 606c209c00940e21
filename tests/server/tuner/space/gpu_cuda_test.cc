// Candidates of the rules for NVIDIA GPUs, printed as CUDA C++, compute their workloads. The
// printed text itself runs on the CPU.

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/exact_values.h"
#include "tests/server/tuner/space/gpu_program.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"
#include "tests/worker/compile/emulated_program.h"
#include "worker/compile/lower/lower.h"

namespace hone::space {
namespace {

// Bytes whose sums of products are one instruction, short floats, and rows that threads load in
// vectors.
constexpr const char* kWorkloads[] = {
    "quantized_matmul m=40 n=48 k=36",
    "quantized_dense m=128 n=128 k=64",  // also with large tiles
    "quantized_conv2d n=1 h=6 w=6 ci=8 co=16 k=3 s=1 p=1",
    "workload rows\ninput A: i8[24, 32]\ninput B: i8[40, 32]\n"
    "output C[i: 24, j: 40] = sum(k: 32) i32(A[i, k]) * i32(B[j, k])\n",
    "workload unsigned\ninput A: u8[32, 40]\ninput B: u8[40, 64]\n"
    "C[i: 32, j: 64] = sum(k: 40) i32(A[i, k]) * i32(B[k, j])\n"
    "output D[i: 32, j: 64] = max(C[i, j] - 9, 0)\n",
    "add_relu m=16 n=32 dtype=f16",
    "dense_relu m=16 n=24 k=20 dtype=bf16",
    "workload rows\ninput X: f32[12, 96]\nM[i: 12] = max(k: 96) X[i, k]\n"
    "E[i: 12, j: 96] = X[i, j] - M[i]\nS[i: 12] = sum(k: 96) E[i, k] * E[i, k]\n"
    "output Y[i: 12, j: 96] = E[i, j] * S[i]\n",
};

TEST(CudaCandidates, ComputeTheWorkload) {
  constexpr int kCandidates = 3;
  struct Candidate {
    std::shared_ptr<const ir::Workload> workload;
    std::string text;
  };
  std::vector<Candidate> candidates;
  std::vector<codegen::Code> codes;
  int with_dots = 0;
  for (const char* const text : kWorkloads) {
    const auto workload = MakeWorkload(text);
    HONE_ASSERT_OK_AND_ASSIGN(const auto spaces, GenerateDesignSpaces(workload, Sm80()));
    for (const auto& space : spaces) {
      for (uint64_t i = 0; i < kCandidates; ++i) {
        Rng rng(29, i);
        const auto drawn = space->Sample(rng);
        ASSERT_THAT(drawn, IsOk()) << space->name();
        const auto program = space->Replay(*drawn);
        if (!program.ok()) continue;
        HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(*program, Sm80()));
        HONE_ASSERT_OK_AND_ASSIGN(codegen::Code code, codegen::Generate(lowered, Sm80()));
        with_dots += absl::StrContains(code.bytes, "hone_dp4a") ? 1 : 0;
        candidates.push_back(
            {workload, schedule::TraceFileText(*space->workload(), space->trace(), *drawn)});
        codes.push_back(std::move(code));
      }
    }
  }
  EXPECT_GE(with_dots, 5 * kCandidates);
  HONE_ASSERT_OK_AND_ASSIGN(const auto programs,
                            codegen::EmulatedPrograms::Build(std::move(codes)));
  for (size_t c = 0; c < candidates.size(); ++c) {
    const ir::Workload& workload = *candidates[c].workload;
    const std::vector<ir::Values> inputs = SmallIntegers(workload, 3);
    HONE_ASSERT_OK_AND_ASSIGN(const auto wanted, ir::Interpret(workload, inputs));
    const auto computed =
        programs->Run(c, workload, ExactValues(workload, workload.Inputs(), inputs),
                      cuda::EmulatedOrder::kRandom, c);
    ASSERT_THAT(computed, IsOk()) << candidates[c].text;
    ASSERT_EQ(*computed, ExactValues(workload, workload.Outputs(), wanted))
        << candidates[c].text << programs->code(c).bytes;
  }
}

}  // namespace
}  // namespace hone::space
