// Compares the builder's reference kernels with the interpreter, as the runner does when it makes a
// reference. A workload on which they disagree cannot be measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/ir/dtype.h"
#include "common/ir/workload_parser.h"
#include "common/target/target.h"
#include "tests/common/operator/arrays.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "worker/builder/build.h"
#include "worker/runner/kernel.h"
#include "worker/runner/reference.h"

namespace hone::builder {
namespace {

using ir::DType;

constexpr DType kAll[] = {DType::kF16,  DType::kBF16,   DType::kF32,   DType::kF64,
                          DType::kI8,   DType::kU8,     DType::kI32,   DType::kI64,
                          DType::kBool, DType::kF8E4M3, DType::kF8E5M2};
constexpr DType kNumbers[] = {DType::kF16,    DType::kBF16,  DType::kF32, DType::kF64,
                              DType::kI8,     DType::kU8,    DType::kI32, DType::kI64,
                              DType::kF8E4M3, DType::kF8E5M2};

// Returns a workload over A and B with one output per element of `values`.
std::string Elementwise(DType dtype, const std::vector<std::string>& values) {
  constexpr int kElements = 77;
  std::string text = "workload operations\n";
  for (const absl::string_view input : {"A", "B"}) {
    absl::StrAppend(&text, "input ", input, ": ", ir::DTypeName(dtype), "[", kElements, "]\n");
  }
  for (size_t v = 0; v < values.size(); ++v) {
    absl::StrAppend(&text, "output y", v, "[i: ", kElements, "] = ", values[v], "\n");
  }
  return text;
}

class ReferenceKernelTest : public ::testing::Test {
 protected:
  // Builds the kernel, runs it on both fillings and compares some hundred elements.
  void ExpectAsInterpreted(const std::string& text) {
    const auto workload = ir::ParseWorkload(text);
    ASSERT_THAT(workload, IsOk()) << text;
    const record::BuildResponse built = Build({.workload = text,
                                               .target = target::DetectHost().ToText(),
                                               .artifact_dir = folder_.path(),
                                               .reference = true});
    ASSERT_EQ(built.outcome, record::Outcome::kOk) << built.detail << "\n" << text;
    HONE_ASSERT_OK_AND_ASSIGN(const auto kernel,
                              runner::LoadKernel(folder_ / built.artifact_digest));
    const absl::Status made = runner::MakeReference(
        *workload, runner::Inputs::Seeded(workload->StructuralDigest().ToHex()), kernel.get(),
        folder_ / "reference");
    EXPECT_THAT(made, IsOk()) << text;
  }

  // The same for `values`, eight per kernel: the time that LLVM takes grows faster than the number
  // of outputs.
  void ExpectElementwise(DType dtype, const std::vector<std::string>& values) {
    constexpr size_t kMostOutputs = 8;
    for (size_t v = 0; v < values.size(); v += kMostOutputs) {
      const size_t end = std::min(v + kMostOutputs, values.size());
      ExpectAsInterpreted(Elementwise(dtype, {values.begin() + v, values.begin() + end}));
    }
  }

  const TemporaryFolder folder_;
};

TEST_F(ReferenceKernelTest, EveryOperationOnEveryDType) {
  for (const DType dtype : kNumbers) {
    const std::string name(ir::DTypeName(dtype));
    std::vector<std::string> values = {"A[i] + B[i]",
                                       "A[i] - B[i]",
                                       "A[i] * B[i] * A[i] * A[i]",
                                       "A[i] / B[i]",
                                       "A[i] / 3",
                                       "min(A[i], B[i])",
                                       "max(A[i], B[i])",
                                       "-A[i]",
                                       "abs(A[i] - B[i])",
                                       "A[i] < B[i]",
                                       "A[i] <= B[i]",
                                       "A[i] == B[i]",
                                       "A[i] < B[i] and not (B[i] < 3) or A[i] == B[i]",
                                       "select(A[i] < B[i], B[i], A[i] * A[i])",
                                       absl::StrCat("A[i] * ", name, "(A[i] < B[i])"),
                                       "i32(A[i] == B[i]) + i32(index(i))",
                                       absl::StrCat(name, "(index(7 * i))")};
    if (ir::IsFloat(dtype)) {
      for (const absl::string_view function :
           {"exp", "log", "sqrt", "rsqrt", "tanh", "erf", "normal_cdf", "sigmoid", "round", "floor",
            "ceil", "trunc"}) {
        values.push_back(absl::StrCat(function, "(A[i])"));
      }
      // Jumps next to whole numbers, and exponents that have errors.
      for (const absl::string_view value :
           {"pow(A[i], B[i])", "pow(abs(A[i]) * 0.3 + 0.5, B[i] * 0.7)", "pow(A[i] - B[i], 2.0)",
            "round(A[i] * 0.5) * 0.3 + B[i]", "floor(A[i] * B[i]) / (ceil(B[i] * 0.3) + 0.5)",
            "trunc(exp(B[i]))"}) {
        values.emplace_back(value);
      }
    } else {
      for (const absl::string_view value :
           {"A[i] << B[i]", "A[i] >> B[i]", "(A[i] * B[i]) << 3 >> 2"}) {
        values.emplace_back(value);
      }
    }
    ExpectElementwise(dtype, values);
  }
}

TEST_F(ReferenceKernelTest, EveryCast) {
  for (const DType from : kAll) {
    std::vector<std::string> values;
    for (const DType to : kAll) {
      values.push_back(absl::StrCat(ir::DTypeName(to), "(A[i])"));
      if (from == DType::kBool) continue;
      values.push_back(absl::StrCat(ir::DTypeName(to), "(A[i] * B[i] * 100)"));
      if (from == DType::kF32) values.push_back(absl::StrCat(ir::DTypeName(to), "(A[i] * 3e9)"));
      if (to == DType::kBool || !ir::IsFloat(from)) continue;
      values.push_back(
          absl::StrCat("exp(", ir::DTypeName(from), "(", ir::DTypeName(to), "(A[i])) / 50.0)"));
    }
    ExpectElementwise(from, values);
  }
}

TEST_F(ReferenceKernelTest, EveryReductionOfEveryDType) {
  for (const DType dtype : kNumbers) {
    std::string text =
        absl::StrCat("workload reductions\ninput X: ", ir::DTypeName(dtype), "[5, 21, 13]\n");
    for (const absl::string_view reducer : {"sum", "prod", "min", "max"}) {
      absl::StrAppend(&text, "output ", reducer, "_[h: 5, i: 21] = ", reducer,
                      "(k: 13) X[h, i, k] * X[h, 20 - i, k]\n");
      // The last rows have no terms.
      absl::StrAppend(&text, "output guarded_", reducer, "[h: 5, i: 21] = ", reducer,
                      "(k: 13 where 0 <= 17 - i - k < 9) X[h, i, k]\n");
    }
    for (const absl::string_view reducer : {"argmax", "argmin"}) {
      absl::StrAppend(&text, "output (", reducer, "_, ", reducer, "_at)[h: 5, i: 21] = ", reducer,
                      "(k: 13) (X[h, i, k], index(k))\n");
      absl::StrAppend(&text, "output (guarded_", reducer, ", guarded_", reducer,
                      "_at)[h: 5, i: 21] = ", reducer,
                      "(k: 13 where 0 <= 17 - i - k < 9) (X[h, i, k], i32(index(k)))\n");
    }
    if (ir::IsFloat(dtype)) {
      const absl::string_view wide = ir::DTypeName(ir::AccumulatorOf(dtype));
      absl::StrAppend(&text, "output (top, scale)[h: 5, i: 21] = online_softmax(k: 13) (", wide,
                      "(X[h, i, k]), 1.0)\n");
    }
    ExpectAsInterpreted(text);
  }
}

TEST_F(ReferenceKernelTest, ProductsThatWrapAndOutputsThatRound) {
  for (const absl::string_view line :
       {"matmul m=17 n=17 k=64 dtype=i8", "conv2d n=1 h=5 w=6 ci=4 co=8 k=3 p=1 dtype=i8",
        "reduce_sum m=31 n=57 dtype=u8", "matmul m=17 n=31 k=64 dtype=i8 acc=i32",
        "quantized_matmul m=17 n=31 k=7"}) {
    ExpectAsInterpreted(op::Built(std::string(line)).ToText());
  }
  for (const absl::string_view to : {"f16", "bf16", "i8", "u8", "i32", "f32"}) {
    ExpectAsInterpreted(
        absl::Substitute("workload rounded\ninput A: f32[9, 40]\ninput B: f32[40, 21]\n"
                         "C[i: 9, j: 21] = sum(k: 40) A[i, k] * B[k, j]\n"
                         "R[i: 9, j: 21] = $0(C[i, j] * 100.0)\n"
                         "output D[i: 9, j: 21] = R[i, j]\n"
                         "output E[i: 9] = max(j: 21) f32(R[i, j]) + C[i, j]\n",
                         to));
  }
}

TEST_F(ReferenceKernelTest, BooleansAsInputsIntermediatesAndOutputs) {
  ExpectAsInterpreted(
      "workload masks\ninput M: bool[7, 19]\ninput A: f32[7, 19]\ninput B: f32[19, 19]\n"
      "S[i: 7, j: 19] = sum(k: 19) A[i, k] * B[k, j]\n"
      "Z[i: 7, j: 19] = S[i, j] < 0 or M[i, j]\n"
      "output N[i: 7, j: 19] = not (Z[i, j])\n"
      "output K[i: 7, j: 19] = select(M[i, j], S[i, j], A[i, j])\n"
      "output C[i: 7] = sum(j: 19) i32(Z[i, j])\n"
      "output same[i: 7, j: 19] = N[i, j] == M[i, j]\n");
}

// The magnitude of a value is unused if only conditions read it. 16 does not divide the inner axes.
TEST_F(ReferenceKernelTest, SumsThatOnlyDivideOrDecide) {
  for (const absl::string_view value :
       {"1.0 / (1.0 + exp(-S[i, j]))", "1.0 / S[i, j]", "select(S[i, j] < 0, 0.0, 1.0)",
        "A[i, 0] / (S[i, j] * S[i, 0])"}) {
    ExpectAsInterpreted(
        absl::StrCat("workload w\ninput A: f32[31, 20]\ninput B: f32[20, 30]\n"
                     "S[i: 31, j: 30] = sum(k: 20) A[i, k] * B[k, j]\n"
                     "output Y[i: 31, j: 30] = ",
                     value, "\n"));
  }
  ExpectAsInterpreted(
      "workload softmax\ninput X: f32[3, 30, 100]\n"
      "M[h: 3, i: 30] = max(j: 100) X[h, i, j]\n"
      "E[h: 3, i: 30, j: 100] = exp(X[h, i, j] - M[h, i])\n"
      "S[h: 3, i: 30] = sum(j: 100) E[h, i, j]\n"
      "output Y[h: 3, i: 30, j: 100] = E[h, i, j] / S[h, i]\n");
}

TEST_F(ReferenceKernelTest, AttentionOfEveryLength) {
  for (const int length : {16, 31, 33, 100}) {
    ExpectAsInterpreted(op::Built(absl::StrCat("attention b=1 h=2 d=16 s=", length)).ToText());
  }
}

}  // namespace
}  // namespace hone::builder
