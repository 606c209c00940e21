// The output check detects a kernel that omits a part of a reduction, for every dtype, length of
// the reduction and size of the part.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/rng.h"
#include "common/ir/dtype.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "worker/runner/check.h"
#include "worker/runner/reference.h"

namespace hone::runner {
namespace {

using ir::DType;

constexpr DType kNumbers[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64,
                              DType::kI8,  DType::kU8,   DType::kI32, DType::kI64};

// $T is the dtype, $K the length of the reduction, and $G a guard that only the wrong kernel has.
constexpr absl::string_view kMatmul =
    "workload matmul\n"
    "input A: $T[8, $K]\n"
    "input B: $T[$K, 8]\n"
    "output C[i: 8, j: 8] = sum(k: $K$G) A[i, k] * B[k, j]\n";
constexpr absl::string_view kSum =
    "workload sum\n"
    "input A: $T[8, $K]\n"
    "output S[i: 8] = sum(k: $K$G) A[i, k]\n";
// An epilogue reads the sum, which is a tensor of a short format.
constexpr absl::string_view kEpilogue =
    "workload epilogue\n"
    "input A: $T[8, $K]\n"
    "input B: $T[$K, 8]\n"
    "input D: $T[8]\n"
    "C[i: 8, j: 8] = sum(k: $K$G) A[i, k] * B[k, j]\n"
    "output E[i: 8, j: 8] = max(C[i, j] + D[j], 0)\n";
// The same with an f32 sum that is cast.
constexpr absl::string_view kMixed =
    "workload mixed\n"
    "input A: $T[8, $K]\n"
    "input B: $T[$K, 8]\n"
    "C[i: 8, j: 8] = sum(k: $K$G) f32(A[i, k]) * f32(B[k, j])\n"
    "output E[i: 8, j: 8] = $T(C[i, j])\n";

// The sum of a softmax over scores of which a fifth is masked. Only the sum omits the tile.
constexpr absl::string_view kMaskedSoftmax =
    "workload masked\n"
    "input X: $T[8, $K]\n"
    "Z[i: 8, k: $K] = select(X[i, k] < $T(0.6), X[i, k], $T(-1e4))\n"
    "M[i: 8] = max(k: $K) Z[i, k]\n"
    "output S[i: 8] = sum(k: $K$G) exp(Z[i, k] - M[i])\n";

// The reduction is in the middle of a chain.
constexpr absl::string_view kTwoProducts =
    "workload two_products\n"
    "input A: $T[2, $K]\n"
    "input B: $T[$K, 32]\n"
    "input D: $T[32, 4]\n"
    "C[i: 2, j: 32] = sum(k: $K$G) A[i, k] * B[k, j]\n"
    "output E[i: 2, j: 4] = sum(k: 32) C[i, k] * D[k, j]\n";
// The reduction is the last stage, over the results of the first.
constexpr absl::string_view kOverComputed =
    "workload over_computed\n"
    "input A: $T[2, 32]\n"
    "input B: $T[32, $K]\n"
    "input D: $T[$K, 4]\n"
    "C[i: 2, j: $K] = sum(k: 32) A[i, k] * B[k, j]\n"
    "output E[i: 2, j: 4] = sum(k: $K$G) C[i, k] * D[k, j]\n";
// The softmax and its product omit some keys.
constexpr absl::string_view kAttention =
    "workload attention\n"
    "input Q: $T[2, 16]\n"
    "input K: $T[$K, 16]\n"
    "input V: $T[$K, 16]\n"
    "S[i: 2, k: $K] = sum(d: 16) Q[i, d] * K[k, d]\n"
    "M[i: 2] = max(k: $K) S[i, k]\n"
    "P[i: 2, k: $K] = exp((S[i, k] - M[i]) * 0.25)\n"
    "L[i: 2] = sum(k: $K$G) P[i, k]\n"
    "N[i: 2, d: 16] = sum(k: $K$G) P[i, k] * V[k, d]\n"
    "output Y[i: 2, d: 16] = N[i, d] / L[i]\n";

// Bounded functions of large and of computed values, whose errors do not reach the results.
constexpr absl::string_view kSaturated =
    "workload saturated\n"
    "input A: $T[8, $K]\n"
    "output S[i: 8] = sum(k: $K$G) tanh(A[i, k] * $T(1000.0))\n";
constexpr absl::string_view kGelu =
    "workload gelu\n"
    "input A: $T[2, 64]\n"
    "input B: $T[64, $K]\n"
    "input D: $T[$K, 4]\n"
    "C[i: 2, k: $K] = sum(d: 64) A[i, d] * B[d, k]\n"
    "H[i: 2, k: $K] = C[i, k] * normal_cdf(C[i, k])\n"
    "output E[i: 2, j: 4] = sum(k: $K$G) H[i, k] * D[k, j]\n";

class DroppedTileTest : public ::testing::TestWithParam<DType> {
 protected:
  static ir::Workload Parse(absl::string_view form, int64_t terms, absl::string_view guard) {
    auto workload = ir::ParseWorkload(absl::StrReplaceAll(
        form, {{"$T", ir::DTypeName(GetParam())}, {"$K", absl::StrCat(terms)}, {"$G", guard}}));
    EXPECT_THAT(workload, IsOk());
    return *std::move(workload);
  }

  // Whether the runner would accept the results of `kernel` as the outputs of `workload`.
  static bool IsAccepted(const ir::Workload& workload, const Reference& reference,
                         const std::string& digest, const ir::Workload& kernel) {
    const Signature signature = SignatureOf(workload);
    const TensorSpec& spec = signature.outputs[0];
    for (const Filling filling : {Filling::kReal, Filling::kInteger}) {
      const Expected expected = reference.Of(filling, 0);
      if (filling == Filling::kInteger && !IsExact(spec, expected, signature)) continue;
      std::vector<ir::Scalars> inputs;
      for (size_t i = 0; i < signature.inputs.size(); ++i) {
        const TensorSpec& input = signature.inputs[i];
        std::vector<char> memory(input.bytes());
        FillTensor(input, filling, InputSeed(digest), static_cast<int>(i), memory.data());
        ir::Scalars& values = inputs.emplace_back();
        for (int64_t e = 0; e < input.elements; ++e) {
          values.push_back(ir::ReadElement(input.dtype, memory.data(), e));
        }
      }
      const auto outputs = ir::Interpret(kernel, inputs);
      EXPECT_THAT(outputs, IsOk());
      std::vector<char> data(spec.bytes());
      for (int64_t e = 0; e < spec.elements; ++e) {
        ir::WriteElement(spec.dtype, data.data(), e, (*outputs)[0][e]);
      }
      const CheckResult check = filling == Filling::kReal
                                    ? CheckOutput(spec, data.data(), expected, signature, 0)
                                    : CheckExact(spec, data.data(), expected, signature);
      if (!check.ok) return false;
    }
    return true;
  }

  void ExpectFound(absl::string_view form, int64_t terms, Rng& rng) {
    const ir::Workload workload = Parse(form, terms, "");
    const std::string digest = workload.StructuralDigest().ToHex();
    const std::string path = folder_ / "reference";
    ASSERT_THAT(MakeReference(workload, Inputs::Seeded(digest), nullptr, path), IsOk());
    HONE_ASSERT_OK_AND_ASSIGN(const auto reference,
                              Reference::Open(path, digest, SignatureOf(workload)));
    EXPECT_TRUE(IsAccepted(workload, *reference, digest, workload)) << workload.ToText();
    for (const int64_t tile : {int64_t{4}, int64_t{16}, terms / 8}) {
      // Omits either the first tiles or the last.
      const bool first = rng.Below(2) == 0;
      const int64_t kept = terms - tile;
      const std::string guard = absl::StrCat(" where 0 <= k - ", first ? tile : 0, " < ", kept);
      const ir::Workload wrong = Parse(form, terms, guard);
      EXPECT_FALSE(IsAccepted(workload, *reference, digest, wrong)) << wrong.ToText();
    }
  }

  const TemporaryFolder folder_;
};

TEST_P(DroppedTileTest, IsAWrongOutput) {
  Rng rng(20261122);
  for (const int64_t terms : {64, 512, 4096}) {
    for (const absl::string_view form : {kMatmul, kSum, kEpilogue}) ExpectFound(form, terms, rng);
    if (ir::IsFloat(GetParam())) {
      for (const absl::string_view form : {kMixed, kTwoProducts, kOverComputed, kAttention}) {
        ExpectFound(form, terms, rng);
      }
    }
    if (GetParam() == DType::kF32 || GetParam() == DType::kF64) {
      for (const absl::string_view form : {kMaskedSoftmax, kSaturated}) {
        ExpectFound(form, terms, rng);
      }
      if (terms <= 512) ExpectFound(kGelu, terms, rng);
    }
  }
  ExpectFound(kSum, 100'000, rng);
}

INSTANTIATE_TEST_SUITE_P(Numbers, DroppedTileTest, ::testing::ValuesIn(kNumbers),
                         [](const auto& info) { return std::string(ir::DTypeName(info.param)); });

}  // namespace
}  // namespace hone::runner
