// Kernels for ARM with known results, under emulation: instructions of the table, errors of
// elementary functions, the CPU guard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/error_bound.h"
#include "common/schedule/trace.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"
#include "tests/worker/compile/ulp_error.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::Values;
using ::testing::HasSubstr;

const char* const kPresets[] = {"arm/cortex-a72", "arm/cortex-a76", "arm/neoverse-v1",
                                "arm/cortex-a7"};

struct Function {
  const char* name;
  long double (*exact)(long double);
  double ulp_f32, ulp_f64;  // the bounds that x86 meets, too
};
const Function kFunctions[] = {
    {"exp", [](long double x) { return std::exp(x); }, 1, 1},
    {"log", [](long double x) { return std::log(x); }, 1, 1},
    {"tanh", [](long double x) { return std::tanh(x); }, 2, 2.5},
    {"erf", [](long double x) { return std::erf(x); }, 1.5, 1.5},
    {"sigmoid", [](long double x) { return 1 / (1 + std::exp(-x)); }, 2.5, 2.5},
    {"normal_cdf", ExactNormalCdf, 3.5, 3.5},
    {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }, 1.5, 1.5},
    {"sqrt", [](long double x) { return std::sqrt(x); }, 0.5, 0.5},
};

// NEON of ARMv7 takes denormal f32 for 0, so results below the smallest normal number are not
// compared there.
TEST(EmulatedKernelTest, ElementaryFunctionsHaveTheSameBoundsAsOnX86) {
  constexpr int kElements = 1 << 14;
  for (const char* const preset : kPresets) {
    const target::Target target = Preset(preset);
    const bool flushes = target.arch == "armv7";
    for (const Function& function : kFunctions) {
      for (const DType dtype : {DType::kF32, DType::kF64}) {
        Rng rng(5, 0);
        Values inputs = {0.0, -0.0, 1.0, -1.0, 0.5, 1e-8, 88.7, -87.3, 1e30, -1e30};
        for (double& input : inputs) input = ir::RoundTo(dtype, input);
        while (inputs.size() < kElements) {
          inputs.push_back(
              ir::RoundTo(dtype, std::ldexp(static_cast<double>(static_cast<int64_t>(rng())),
                                            static_cast<int>(rng.Below(24)) - 76)));
        }
        const std::string workload =
            absl::StrCat("workload f\ninput X: ", ir::DTypeName(dtype), "[", kElements,
                         "]\noutput Y[i: ", kElements, "] = ", function.name, "(X[i])\n");
        const auto outputs = RunTrace(target, WithVectors(workload, {"Y"}, 4), {{inputs}});
        ASSERT_THAT(outputs, IsOk()) << preset << " " << function.name;
        double worst = 0, at = 0;
        for (size_t i = 0; i < inputs.size(); ++i) {
          const long double exact = function.exact(inputs[i]);
          if (flushes && dtype == DType::kF32 && std::abs(exact) < 0x1p-126L) continue;
          const double ulp = UlpError(dtype, (*outputs)[0][i], exact);
          if (!(ulp <= worst)) worst = ulp, at = inputs[i];
        }
        EXPECT_LE(worst, dtype == DType::kF32 ? function.ulp_f32 : function.ulp_f64)
            << preset << " " << ir::DTypeName(dtype) << " " << function.name << " at " << at;
      }
    }
  }
}

// Returns a product of matrices whose inner loops are one instruction.
std::string DotTrace(const char* left, const char* right, const char* sum, int group,
                     const char* name) {
  return absl::StrCat(
      "workload w\ninput A: ", left, "[6, 32]\ninput B: ", right,
      "[32, 8] constant\noutput C[i: 6, j: 8] = sum(k: 32) ", sum, "(A[i, k]) * ", sum,
      "(B[k, j])\ntrace 1\nb0 = block(\"C\")\nb1 = cache_read(b0, \"B\", \"global\")\n",
      "transform_layout(b1, \"k, j -> j / 4, k / ", group, ", j % 4, k % ", group,
      "\")\nl0, l1, l2 = loops(b0)\nl3, l4 = split(l1, 0, 4)\nl5, l6 = split(l2, 0, ", group,
      ")\nreorder(l5, l4, l6)\ntensorize(l4, \"", name, "\")\n");
}

// Returns a product of 14 × 32 by 32 × 10 whose results are computed in blocks of 2×2, in register
// tiles of 4×6 with remainders. The copy of the result takes the blocks apart.
std::string BlockTrace(const char* left, const char* right, const char* sum, int group,
                       const char* name) {
  return absl::StrCat(
      "workload w\ninput A: ", left, "[14, 32]\ninput B: ", right,
      "[32, 10] constant\noutput C[i: 14, j: 10] = sum(k: 32) ", sum, "(A[i, k]) * ", sum,
      "(B[k, j])\ntrace 1\nb0 = block(\"C\")\nb1 = cache_read(b0, \"A\", \"global\")\n",
      "transform_layout(b1, \"i, k -> i / 4, k / ", group, ", i % 4, k % ", group,
      "\")\nb2 = cache_read(b0, \"B\", \"global\")\ntransform_layout(b2, \"k, j -> j / 6, k / ",
      group, ", j % 6, k % ", group,
      "\")\nb3 = cache_write(b0, \"global\")\nl0, l1, l2 = loops(b0)\nl3, l4 = split(l0, 0, 2)\n"
      "l5, l6 = split(l1, 0, 2)\nl7, l8 = split(l2, 0, ",
      group,
      ")\nl9, l10 = split(l3, 0, 2)\nl11, l12 = split(l5, 0, 3)\n"
      "reorder(l9, l11, l7, l10, l12, l4, l6, l8)\nreverse_compute_at(b3, l11)\n"
      "transform_layout(b0, \"i, j -> i / 2, j / 2, i % 2, j % 2\")\ntensorize(l4, \"",
      name, "\")\nunroll(l10)\nunroll(l12)\nl13, l14, l15, l16 = loops(b3)\n",
      "l17, l18 = split(l16, 0, 2)\nvectorize(l18)\n");
}

struct Product {
  const char *left, *right, *sum;
  int group;
  const char* name;
};

// Compares the outputs of a trace with products of whole numbers, which are exact.
void ExpectExact(const Product& p, const std::string& trace, int rows, int columns) {
  Values a, b, expected(rows * columns, 0);
  Rng rng(3, 0);
  const auto draw = [&](absl::string_view dtype) {
    return static_cast<double>(rng.Below(100)) - (dtype[0] == 'u' ? 0 : 50);
  };
  for (int i = 0; i < rows * 32; ++i) a.push_back(draw(p.left));
  for (int i = 0; i < 32 * columns; ++i) b.push_back(draw(p.right));
  for (int i = 0; i < rows * columns; ++i) {
    for (int k = 0; k < 32; ++k)
      expected[i] += a[i / columns * 32 + k] * b[k * columns + i % columns];
  }
  const auto outputs = RunTrace(Preset("arm/neoverse-v2"), trace, {{a, b}});
  ASSERT_THAT(outputs, IsOk()) << p.name;
  EXPECT_EQ((*outputs)[0], expected) << p.name;
}

TEST(EmulatedKernelTest, InstructionsOfTheTableMultiplyAsTheyAreDescribed) {
  for (const Product& p :
       {Product{"i8", "i8", "i32", 4, "sdot_4x4"}, Product{"u8", "u8", "i32", 4, "udot_4x4"},
        Product{"u8", "i8", "i32", 4, "usdot_4x4"},
        Product{"bf16", "bf16", "f32", 2, "bfdot_4x2"}}) {
    ExpectExact(p, DotTrace(p.left, p.right, p.sum, p.group, p.name), 6, 8);
  }
  for (const Product& p :
       {Product{"i8", "i8", "i32", 8, "smmla_2x2x8"}, Product{"u8", "u8", "i32", 8, "ummla_2x2x8"},
        Product{"u8", "i8", "i32", 8, "usmmla_2x2x8"},
        Product{"bf16", "bf16", "f32", 4, "bfmmla_2x2x4"}}) {
    ExpectExact(p, BlockTrace(p.left, p.right, p.sum, p.group, p.name), 14, 10);
  }
}

// The instructions round differently from multiply-adds, but within the bound of the output check.
TEST(EmulatedKernelTest, ProductsOfBf16StayWithinTheBound) {
  const struct {
    std::string trace;
    int rows, columns;
  } kCases[] = {{DotTrace("bf16", "bf16", "f32", 2, "bfdot_4x2"), 6, 8},
                {BlockTrace("bf16", "bf16", "f32", 4, "bfmmla_2x2x4"), 14, 10}};
  for (const auto& c : kCases) {
    const ir::Workload workload = schedule::ParseTraceFile(c.trace).value().workload;
    const double unit = ir::Accuracy(workload).relative_error();
    Rng rng(7, 0);
    const auto draw = [&](int count) {
      Values values;
      for (int i = 0; i < count; ++i) {
        values.push_back(
            ir::RoundTo(DType::kBF16, std::ldexp(static_cast<double>(static_cast<int64_t>(rng())),
                                                 static_cast<int>(rng.Below(8)) - 67)));
      }
      return values;
    };
    const Values a = draw(c.rows * 32), b = draw(32 * c.columns);
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs,
                              RunTrace(Preset("arm/neoverse-v2"), c.trace, {{a, b}}));
    for (int i = 0; i < c.rows * c.columns; ++i) {
      double exact = 0, magnitude = 0;
      for (int k = 0; k < 32; ++k) {
        const double product = a[i / c.columns * 32 + k] * b[k * c.columns + i % c.columns];
        exact += product;
        magnitude += std::abs(product);
      }
      EXPECT_NEAR(outputs[0][i], exact, unit * magnitude) << i;
    }
  }
}

TEST(EmulatedKernelTest, IntegersOf64BitsAreRoundedOnce) {
  // A[i] + 1 is closer to the f32 above it, but f64 rounds it to the middle between two f32.
  const Values inputs(8, 0x1p60 + 0x1p36), expected(8, 0x1p60 + 0x1p37);
  const char* const workload = "workload w\ninput A: i64[8]\noutput Y[i: 8] = f32(A[i] + 1)\n";
  for (const char* const preset : kPresets) {
    for (const int lanes : {1, 2, 4, 8}) {
      const auto outputs =
          RunTrace(Preset(preset), WithVectors(workload, {"Y"}, lanes), {{inputs}});
      ASSERT_THAT(outputs, IsOk()) << preset;
      EXPECT_EQ((*outputs)[0], expected) << preset << " " << lanes << " lanes";
    }
  }
}

// LLVM 19 stores a vector of three such bytes in the wrong places, and cannot select it for SVE.
TEST(EmulatedKernelTest, IntegersOf64BitsAreNarrowedInVectorsOfAnyLength) {
  Values inputs, expected;
  for (int i = 0; i < 31; ++i) {
    inputs.push_back(i * 300 - 4000);
    expected.push_back(static_cast<int8_t>(i * 300 - 4000));
  }
  const char* const workload = "workload w\ninput A: i64[31]\noutput Y[i: 31] = i8(A[i])\n";
  for (const char* const preset : kPresets) {
    for (const int lanes : {2, 3, 5, 6, 7, 15}) {
      const auto outputs =
          RunTrace(Preset(preset), WithVectors(workload, {"Y"}, lanes), {{inputs}});
      ASSERT_THAT(outputs, IsOk()) << preset;
      EXPECT_EQ((*outputs)[0], expected) << preset << " " << lanes << " lanes";
    }
  }
}

constexpr char kCopy[] = "workload w\ninput X: f32[8]\noutput Y[i: 8] = X[i] + 1.0\ntrace 1\n";

// The emulated Cortex-A72 lacks features of a Cortex-A76, and vectors of SVE have one length.
TEST(EmulatedKernelTest, ACpuThatLacksAFeatureIsRefused) {
  target::Target newer = Preset("arm/cortex-a76");
  newer.features = {"neon"};  // chooses the emulated CPU
  const auto refused = RunTrace(newer, kCopy, {{Values(8, 1)}});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("return codes 1 and 1"));
  const auto runs = RunTrace(Preset("arm/cortex-a76"), kCopy, {{Values(8, 1)}});
  EXPECT_THAT(runs, IsOk());
}

// Tiles whose loads are joined or moved: the largest tiles of the registers, with tails.
TEST(EmulatedKernelTest, TilesOfAllRegistersMultiplyExactly) {
  constexpr char kTrace[] = R"(workload matmul
input A: f32[17, 35]
input B: f32[35, 25]
output C[i: 17, j: 25] = sum(k: 35) A[i, k] * B[k, j]
trace 1
b0 = block("C")
i, j, k = loops(b0)
b1 = cache_read(b0, "A", "global")
transform_layout(b1, "i, k -> i / 8, k, i % 8")
b2 = cache_read(b0, "B", "global")
transform_layout(b2, "k, j -> j / 12, k, j % 12")
i0, j0, k0 = register_tile(b0, i, j, k, 8, 3, 4, 4)
reorder(i0, j0, k0)
)";
  Values a, b, expected(17 * 25, 0);
  Rng rng(9, 0);
  for (int i = 0; i < 17 * 35; ++i) a.push_back(static_cast<double>(rng.Below(9)) - 4);
  for (int i = 0; i < 35 * 25; ++i) b.push_back(static_cast<double>(rng.Below(9)) - 4);
  for (int i = 0; i < 17 * 25; ++i) {
    for (int k = 0; k < 35; ++k) expected[i] += a[i / 25 * 35 + k] * b[k * 25 + i % 25];
  }
  for (const char* const preset : {"arm/cortex-a53", "arm/cortex-a55", "arm/cortex-a72",
                                   "arm/cortex-a76", "arm/neoverse-v1", "arm/cortex-a7"}) {
    const auto outputs = RunTrace(Preset(preset), kTrace, {{a, b}});
    ASSERT_THAT(outputs, IsOk()) << preset;
    EXPECT_EQ((*outputs)[0], expected) << preset;
  }
}

}  // namespace
}  // namespace hone::codegen
