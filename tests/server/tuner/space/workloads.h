#ifndef HONE_TESTS_SERVER_TUNER_SPACE_WORKLOADS_H_
#define HONE_TESTS_SERVER_TUNER_SPACE_WORKLOADS_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"
#include "common/target/target.h"

namespace hone::space {

// Makes a workload from a line like "matmul m=8 n=8 k=8", or from its text form if the text begins
// with "workload".
std::shared_ptr<const ir::Workload> MakeWorkload(absl::string_view text);

// A product whose second factor is transposed.
inline constexpr char kTransposedWeights[] =
    "workload matmul_nt\n"
    "input A: f32[20, 12]\n"
    "input B: f32[40, 12] constant\n"
    "output C[i: 20, j: 40] = sum(k: 12) A[i, k] * B[j, k]\n";
// A product with two stages after the sum.
inline constexpr char kTwoStagesAfterSum[] =
    "workload chain\n"
    "input A: f32[18, 10]\n"
    "input B: f32[10, 50]\n"
    "input bias: f32[50]\n"
    "C[i: 18, j: 50] = sum(k: 10) A[i, k] * B[k, j]\n"
    "E[i: 18, j: 50] = C[i, j] + bias[j]\n"
    "output D[i: 18, j: 50] = max(E[i, j], 0.0)\n";

// The presets x86-avx512 and x86-avx2.
target::Target Avx512();
target::Target Avx2();

// Small integers for every input, determined by the seed. Sums of them are exact in f32.
std::vector<ir::Values> SmallIntegers(const ir::Workload& workload, uint64_t seed);

}  // namespace hone::space

#endif  // HONE_TESTS_SERVER_TUNER_SPACE_WORKLOADS_H_
