// The code for f16 on CPUs with and without instructions for it. Code for other CPUs than this one
// is only read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

target::Target Arm(const char* cpu, std::vector<std::string> features) {
  return {.arch = "aarch64",
          .triple = "aarch64-unknown-linux-gnu",
          .cpu = cpu,
          .features = std::move(features),
          .vector_bits = 128,
          .vector_registers = 32};
}
target::Target X86WithF16() {
  target::Target target = Preset("x86-avx512");
  target.cpu = "sapphirerapids";
  target.features.emplace_back("avx512fp16");
  std::sort(target.features.begin(), target.features.end());
  return target;
}
target::Target ArmWithF16() { return Arm("neoverse-n1", {"dotprod", "fullfp16", "neon"}); }
std::vector<target::Target> WithoutF16() {
  return {{.cpu = "x86-64", .vector_bits = 128},
          Preset("x86-avx2"),
          Preset("x86-avx512"),
          Arm("generic", {"neon"}),
          Arm("cortex-a72", {"neon"})};
}

// The assembly of the loop of Y[i] = `value`, where A and B are f16 and W is f32.
std::string Code(const target::Target& target, const std::string& value, int lanes) {
  const std::string text = absl::StrCat(
      "workload w\ninput A: f16[64]\ninput B: f16[64]\ninput W: f32[64]\noutput Y[i: 64] = ", value,
      "\n");
  const auto assembly = AssemblyOf(target, WithVectors(text, {"Y"}, lanes));
  EXPECT_THAT(assembly, IsOk()) << text;
  return assembly.ok() ? assembly->substr(0, assembly->find(".Lfunc_end0:")) : "";
}

TEST(F16Test, ConversionsCallNoFunction) {
  std::vector<target::Target> targets = WithoutF16();
  targets.push_back(X86WithF16());
  targets.push_back(ArmWithF16());
  for (const target::Target& target : targets) {
    for (const int lanes : {1, 4, 16}) {
      for (const DType dtype : {DType::kBF16, DType::kF32, DType::kF64, DType::kI8, DType::kU8,
                                DType::kI32, DType::kI64, DType::kF8E4M3, DType::kF8E5M2}) {
        const std::string name(ir::DTypeName(dtype));
        SCOPED_TRACE(absl::StrCat(name, " on ", target.cpu, ", ", lanes, " lanes"));
        const std::string code =
            Code(target,
                 absl::StrCat("f16(", name, "(A[i])) + f16(", name, "(B[i]) * ", name, "(W[i]))"),
                 lanes);
        EXPECT_THAT(code, Not(ContainsRegex("__(extend|trunc|gnu|fix|float)[a-z]*")));
      }
    }
  }
}

TEST(F16Test, VectorsAreConvertedByInstructions) {
  for (const target::Target& target : WithoutF16()) {
    if (target.cpu == "x86-64") continue;
    SCOPED_TRACE(target.cpu);
    const bool x86 = target.arch == "x86_64";
    const std::string code = Code(target, "A[i] + B[i]", 16);
    EXPECT_THAT(code, HasSubstr(x86 ? "vcvtph2ps" : "fcvtl"));
    EXPECT_THAT(code, HasSubstr(x86 ? "vaddps" : "fadd"));
    EXPECT_THAT(code, HasSubstr(x86 ? "vcvtps2ph" : "fcvtn"));
  }
}

TEST(F16Test, OperationsThatAreRoundedAtOnceAreComputedInF16) {
  const struct {
    const char* value;
    const char* x86;
    const char* arm;
  } cases[] = {
      {"A[i] + B[i]", "vaddph", "fadd"},
      {"f16(f32(A[i]) + f32(B[i]))", "vaddph", "fadd"},
      {"A[i] - B[i]", "vsubph", "fsub"},
      {"A[i] * B[i]", "vmulph", "fmul"},
      {"A[i] / B[i]", "vdivph", "fdiv"},
      {"sqrt(A[i])", "vsqrtph", "fsqrt"},
      {"A[i] * f16(0.1)", "vmulph", "fmul"},   // the constant is an f16
      {"A[i] * B[i / 64]", "vmulph", "fmul"},  // a scalar for all lanes
      {"f16(f32(A[i]) + f32(B[i])) * A[i]", "vaddph", "fadd"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.value);
    const std::string x86 = Code(X86WithF16(), c.value, 16);
    EXPECT_THAT(x86, HasSubstr(c.x86));
    EXPECT_THAT(x86, Not(HasSubstr("vcvt")));
    const std::string arm = Code(ArmWithF16(), c.value, 8);
    EXPECT_THAT(arm, ContainsRegex(absl::StrCat(c.arm, "\tv[0-9]+\\.8h")));
    EXPECT_THAT(arm, Not(HasSubstr("fcvt")));
    for (const target::Target& target : WithoutF16()) {
      EXPECT_THAT(Code(target, c.value, 16),
                  Not(ContainsRegex("v[a-z]+ph\t|\\.8h, v[0-9]+\\.8h, v")));
    }
  }
}

// The result in f16 would be another one, or f32 is wanted.
TEST(F16Test, OtherOperationsAreComputedInF32) {
  for (const char* value :
       {"A[i] * B[i] + A[i]", "f32(A[i]) + f32(B[i])", "f16(f32(A[i]) * W[i])",
        "f16(f32(A[i]) * 0.1)", "exp(A[i])", "f16(f32(A[i]) * f32(B[i]) * f32(A[i]))"}) {
    SCOPED_TRACE(value);
    EXPECT_THAT(Code(X86WithF16(), value, 16),
                Not(ContainsRegex("v(add|sub|mul|div|fm[a-z]+[0-9]+)ph\t")));
    EXPECT_THAT(Code(ArmWithF16(), value, 8),
                Not(ContainsRegex("f(add|sub|mul|div|mla)\tv[0-9]+\\.8h")));
  }
}

// Why f16 may be used: after rounding to f32, the result in f16 is that of the exact result. f64
// stands for the exact result, which is at least as far from every middle of two f16 as above.
TEST(F16Test, RoundingToF32FirstDoesNotChangeTheResult) {
  Rng rng(20261123);
  const auto f16 = [](double value) { return ir::RoundTo(DType::kF16, value); };
  const auto random = [&] {
    const int exponent = static_cast<int>(rng.Below(30)) - 25;  // a fifth is denormal
    return f16(std::ldexp(1 + static_cast<double>(rng.Below(1024)) / 1024, exponent) *
               (rng.Below(2) == 0 ? 1 : -1));
  };
  for (int i = 0; i < 1'000'000; ++i) {
    const double a = random(), b = random();
    for (const double exact : {a + b, a - b, a * b, a / b, std::sqrt(std::fabs(a))}) {
      ASSERT_EQ(f16(static_cast<float>(exact)), f16(exact)) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace hone::codegen
