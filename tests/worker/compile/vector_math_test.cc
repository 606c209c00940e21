// Compares the elementary functions of compiled kernels with libm in long double: errors in ulp of
// the exact result.
#include "worker/compile/llvm/vector_math/vector_math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "common/base/rng.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"
#include "tests/worker/compile/ulp_error.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::Values;

struct Function {
  absl::string_view name;
  long double (*exact)(long double);
  double max_ulp_f32;
  double max_ulp_f64;
};

const Function kFunctions[] = {
    {"exp", [](long double x) { return std::exp(x); }, 1, 1},
    {"log", [](long double x) { return std::log(x); }, 1, 1},
    {"tanh", [](long double x) { return std::tanh(x); }, 2, 2.5},
    {"erf", [](long double x) { return std::erf(x); }, 1.5, 1.5},
    {"normal_cdf", ExactNormalCdf, 3.5, 3.5},
    {"sigmoid", [](long double x) { return 1 / (1 + std::exp(-x)); }, 2.5, 2.5},
    {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }, 1.5, 1.5},
    {"sqrt", [](long double x) { return std::sqrt(x); }, 0.5, 0.5},
};

std::unique_ptr<CompiledProgram> Kernel(const target::Target& target, absl::string_view function,
                                        DType dtype, int64_t elements, int lanes) {
  const std::string workload =
      absl::StrCat("workload f\ninput X: ", ir::DTypeName(dtype), "[", elements,
                   "]\noutput Y[i: ", elements, "] = ", function, "(X[i])\n");
  const auto program = ReplayText(WithVectors(workload, {"Y"}, lanes));
  EXPECT_THAT(program, IsOk());
  auto compiled = CompiledProgram::Load(*program, target);
  EXPECT_THAT(compiled, IsOk());
  return compiled.ok() ? *std::move(compiled) : nullptr;
}

struct Worst {
  double ulp = 0;
  double at = 0;
  double got = 0;
};
void Merge(Worst& worst, DType dtype, const Function& function, const Values& inputs,
           const Values& outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double ulp = UlpError(dtype, outputs[i], function.exact(inputs[i]));
    if (!(ulp <= worst.ulp)) worst = {ulp, inputs[i], outputs[i]};
  }
}
std::string Text(const Worst& worst) {
  return absl::StrCat(worst.ulp, " ulp at ", worst.at, ", which gave ", worst.got);
}

// Values at which the code changes: the ends of the range, denormals, bounds of the range
// reductions.
Values SpecialF64() {
  Values values;
  for (const double v : {0.0,
                         0x1p-1074,
                         0x1p-1022,
                         0x1.fffffffffffffp-1023,
                         0x1p-149,
                         0x1p-126,
                         0x1.fffffcp-127,
                         1e-20,
                         1e-8,
                         1e-4,
                         0.3465735,
                         0.34657359027997264,
                         0.5,
                         0.6931471805599453,
                         0.7071067811865476,
                         0.85,
                         0.9,
                         1.0,
                         1.4142135623730951,
                         2.0,
                         3.9,
                         4.0,
                         5.9,
                         6.0,
                         9.0,
                         9.02,
                         12.98,
                         14.17,
                         14.3,
                         19.0,
                         19.1,
                         37.52,
                         38.47,
                         38.6,
                         87.33,
                         88.72283,
                         88.722839,
                         88.73,
                         103.9,
                         104.0,
                         105.0,
                         708.4,
                         709.78271289338397,
                         709.79,
                         745.13,
                         745.2,
                         746.0,
                         1e10,
                         1e30,
                         0x1.fffffep127,
                         1e300,
                         0x1.fffffffffffffp1023,
                         std::numeric_limits<double>::infinity()}) {
    for (const double sign : {1.0, -1.0}) {
      values.push_back(sign * v);
      values.push_back(std::nextafter(sign * v, 0.0));
      values.push_back(std::nextafter(sign * v, sign * std::numeric_limits<double>::infinity()));
    }
  }
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  return values;
}

class VectorMathTest : public testing::TestWithParam<Function> {};

TEST_P(VectorMathTest, F32WithinItsUlpOnEvery997thBitPattern) {
  const Function& function = GetParam();
  const target::Target target = RunnableTargets().back();
  constexpr int64_t kChunk = 1 << 18;
  const auto kernel = Kernel(target, function.name, DType::kF32, kChunk, 16);
  ASSERT_NE(kernel, nullptr);
  Worst worst;
  Values inputs;
  for (const double special : SpecialF64()) inputs.push_back(static_cast<float>(special));
  uint64_t bits = 0;
  while (bits < (uint64_t{1} << 32)) {
    for (; static_cast<int64_t>(inputs.size()) < kChunk; bits += 997)
      inputs.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, kernel->Run({inputs}));
    Merge(worst, DType::kF32, function, inputs, outputs[0]);
    inputs.clear();
  }
  std::cout << "f32 " << function.name << ": " << Text(worst) << "\n";
  EXPECT_LE(worst.ulp, function.max_ulp_f32) << Text(worst);
}

TEST_P(VectorMathTest, F64WithinItsUlp) {
  const Function& function = GetParam();
  const target::Target target = RunnableTargets().back();
  constexpr int64_t kChunk = 1 << 17;
  const auto kernel = Kernel(target, function.name, DType::kF64, kChunk, 8);
  ASSERT_NE(kernel, nullptr);
  Worst worst;
  Rng rng(7, 0);
  Values inputs = SpecialF64();
  for (int chunk = 0; chunk < 8; ++chunk) {
    while (static_cast<int64_t>(inputs.size()) < kChunk) {
      // A quarter covers all exponents; the rest is dense where the functions are neither trivial
      // nor constant.
      const uint64_t random = rng();
      inputs.push_back(random % 4 == 0
                           ? std::bit_cast<double>(rng())
                           : std::ldexp(static_cast<double>(static_cast<int64_t>(rng())),
                                        static_cast<int>(random >> 32) % 16 - 68));
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, kernel->Run({inputs}));
    Merge(worst, DType::kF64, function, inputs, outputs[0]);
    inputs.clear();
  }
  std::cout << "f64 " << function.name << ": " << Text(worst) << "\n";
  EXPECT_LE(worst.ulp, function.max_ulp_f64) << Text(worst);
}

// The functions are computed in f32 and rounded, so the error is little more than half a unit.
TEST_P(VectorMathTest, HalfTypesAreRightForEveryBitPattern) {
  const Function& function = GetParam();
  for (const target::Target& target : RunnableTargets()) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      Values inputs;
      for (uint32_t bits = 0; bits < 65536; ++bits) {
        inputs.push_back(dtype == DType::kF16 ? static_cast<double>(std::bit_cast<_Float16>(
                                                    static_cast<uint16_t>(bits)))
                                              : std::bit_cast<float>(bits << 16));
      }
      const auto kernel = Kernel(target, function.name, dtype, 65536, 16);
      ASSERT_NE(kernel, nullptr);
      HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, kernel->Run({inputs}));
      Worst worst;
      Merge(worst, dtype, function, inputs, outputs[0]);
      EXPECT_LE(worst.ulp, 0.502) << ir::DTypeName(dtype) << ": " << Text(worst);
    }
  }
}

TEST_P(VectorMathTest, ScalarsAndVectorsOfAnyWidthAndTargetGiveTheSameBits) {
  const Function& function = GetParam();
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    Values inputs;
    for (const double special : SpecialF64()) inputs.push_back(ir::RoundTo(dtype, special));
    Rng rng(11, 0);
    while (inputs.size() < 5000)
      inputs.push_back(
          ir::RoundTo(dtype, std::ldexp(static_cast<double>(static_cast<int64_t>(rng())),
                                        static_cast<int>(rng.Below(76)) - 128)));
    std::vector<uint64_t> first;
    for (const target::Target& target : RunnableTargets()) {
      for (const int lanes : {1, 4, 5, 8, 16, 24, 64}) {
        const auto kernel =
            Kernel(target, function.name, dtype, static_cast<int64_t>(inputs.size()), lanes);
        ASSERT_NE(kernel, nullptr);
        HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, kernel->Run({inputs}));
        std::vector<uint64_t> bits;
        for (const double value : outputs[0])
          bits.push_back(std::isnan(value) ? 0x7ff8000000000000 : std::bit_cast<uint64_t>(value));
        if (first.empty()) first = bits;
        EXPECT_EQ(first, bits) << ir::DTypeName(dtype) << " with " << lanes << " lanes";
      }
    }
  }
}

// The formulas of operators and of ONNX's activations, and what they compute.
struct Formula {
  const char* name;
  const char* text;  // of $0
  long double (*exact)(long double);
  double least_input = 0;  // smaller ones have powers that underflow
  // Whether f32 and f64 results may be denormal without such an operation, unless the input is
  // small, too: with AVX2, or always.
  enum { kNo, kWithAvx2, kAlways } denormal_results = kNo;
};
long double Times(long double x, long double y) { return x == 0 || y == 0 ? 0 : x * y; }
long double ExactSigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
const Formula kFormulas[] = {
    {"exp", "exp($0)", [](long double x) { return std::exp(x); }, 0, Formula::kWithAvx2},
    {"log", "log($0)", [](long double x) { return std::log(x); }},
    {"tanh", "tanh($0)", [](long double x) { return std::tanh(x); }},
    {"erf", "erf($0)", [](long double x) { return std::erf(x); }},
    {"normal_cdf", "normal_cdf($0)", ExactNormalCdf, 0, Formula::kAlways},
    {"sigmoid", "sigmoid($0)", ExactSigmoid, 0, Formula::kAlways},
    {"rsqrt", "rsqrt($0)", [](long double x) { return 1 / std::sqrt(x); }},
    {"sqrt", "sqrt($0)", [](long double x) { return std::sqrt(x); }},
    {"abs", "abs($0)", [](long double x) { return std::abs(x); }},
    {"round", "round($0)", [](long double x) { return std::rint(x); }},
    {"floor", "floor($0)", [](long double x) { return std::floor(x); }},
    {"ceil", "ceil($0)", [](long double x) { return std::ceil(x); }},
    {"trunc", "trunc($0)", [](long double x) { return std::trunc(x); }},
    {"inverse", "1.0 / $0", [](long double x) { return 1 / x; }},
    {"third", "$0 / V[0]", [](long double x) { return x / 3; }},
    {"gelu", "$0 * normal_cdf($0)", [](long double x) { return Times(x, ExactNormalCdf(x)); }, 0,
     Formula::kAlways},
    {"gelu_swapped", "normal_cdf($0) * $0",
     [](long double x) { return Times(x, ExactNormalCdf(x)); }, 0, Formula::kAlways},
    {"gelu_with_tanh", "$0 * sigmoid(1.5957692 * ($0 + 0.044715 * $0 * $0 * $0))",
     [](long double x) { return Times(x, ExactSigmoid(1.5957692L * (x + 0.044715L * x * x * x))); },
     0x1p-40},
    {"silu", "$0 * sigmoid($0)", [](long double x) { return Times(x, ExactSigmoid(x)); }, 0,
     Formula::kAlways},
    {"silu_of_operators",
     "select($0 < 0.0, $0 * exp(abs($0) * -0.5) * exp(abs($0) * -0.5), $0) / "
     "(exp(abs($0) * -0.5) * exp(abs($0) * -0.5) + 1.0)",
     [](long double x) { return Times(x, ExactSigmoid(x)); }, 0, Formula::kAlways},
    {"pow_of_x", "pow($0, 1.7)", [](long double x) { return std::pow(std::abs(x), 1.7L); }},
    {"pow_to_x", "pow(1.7, $0)", [](long double x) { return std::pow(1.7L, x); }},
    {"pow_of_negative", "pow(-2.0, $0)", [](long double x) { return std::pow(2.0L, x); }},
    {"pow_of_less", "pow(0.3, $0)", [](long double x) { return std::pow(0.3L, x); }},
};

// Vectors whose lanes are all in the usual range take a shorter way.
TEST(VectorMathTest, TheOtherLanesOfAVectorDoNotMatter) {
  Rng rng(31, 0);
  Values moderate, all;
  for (int i = 0; i < 960; ++i) {
    moderate.push_back(ir::RoundTo(DType::kF32, 200 * rng.Uniform() - 100));
    if (std::fabs(moderate.back()) > 39) moderate.back() /= 3;
    const bool far = i % 64 < 32 ? i % 32 == 5 : rng.Below(3) == 0;
    all.push_back(far ? ir::RoundTo(DType::kF32, 400 * rng.Uniform() - 200) : moderate.back());
  }
  all[5] = std::numeric_limits<double>::quiet_NaN();
  all[69] = std::numeric_limits<double>::infinity();
  all[133] = -std::numeric_limits<double>::infinity();
  for (const Formula& formula : kFormulas) {
    const std::string name = formula.name;
    if (name != "exp" && name != "sigmoid" && name.find("silu") == std::string::npos &&
        name != "gelu_with_tanh")
      continue;
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const std::string type(ir::DTypeName(dtype));
      const std::string workload =
          absl::StrCat("workload f\ninput X: ", type,
                       "[960]\noutput Y[i: 960] = ", absl::Substitute(formula.text, "X[i]"), "\n");
      for (const target::Target& target : RunnableTargets()) {
        std::vector<Values> results;
        for (const int lanes : {1, 8, 24, 32}) {
          HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                                    ReplayText(WithVectors(workload, {"Y"}, lanes)));
          HONE_ASSERT_OK_AND_ASSIGN(const auto kernel, CompiledProgram::Load(program, target));
          HONE_ASSERT_OK_AND_ASSIGN(const auto of_moderate, kernel->Run({moderate}));
          HONE_ASSERT_OK_AND_ASSIGN(const auto of_all, kernel->Run({all}));
          results.push_back(of_moderate[0]);
          for (size_t i = 0; i < all.size(); ++i) {
            const bool same = all[i] == moderate[i];
            EXPECT_TRUE(!same || of_all[0][i] == of_moderate[0][i])
                << name << " of " << all[i] << " in " << type << " with " << lanes << " lanes";
            if (std::isinf(all[i]) && all[i] > 0) {
              EXPECT_EQ(of_all[0][i], name == "sigmoid" ? 1 : all[i]) << name << lanes;
            }
            if (std::isnan(all[i])) {
              EXPECT_TRUE(std::isnan(of_all[0][i])) << name << lanes;
            }
          }
          EXPECT_EQ(results[0], results.back()) << name << " in " << type << ", " << lanes;
        }
      }
    }
  }
}

#ifdef __x86_64__
// A denormal operand or result costs some CPUs hundreds of cycles, and so does a result that
// underflows to 0. They may only occur where the input is denormal, or where the result is, and the
// function is not known to avoid it.
TEST(VectorMathTest, NothingUnderflowsUnlessTheInputOrTheResultIsDenormal) {
  constexpr int kCount = 16;
  Rng rng(29, 0);
  for (const Formula& formula : kFormulas) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
      const DType wide = ir::AccumulatorOf(dtype);
      const bool f64 = wide == DType::kF64;
      const double least = f64 ? 0x1p-1022 : 0x1p-126;
      const double least_input = std::max(least, formula.least_input);
      const std::string type(ir::DTypeName(dtype));
      const std::string x = wide == dtype ? "X[i]" : absl::StrCat(ir::DTypeName(wide), "(X[i])");
      const std::string workload = absl::StrCat(
          "workload f\ninput X: ", type, "[", kCount, "]\ninput V: ", ir::DTypeName(wide),
          "[1]\noutput Y[i: ", kCount, "] = ", type, "(", absl::Substitute(formula.text, x), ")\n");
      for (const target::Target& target : RunnableTargets()) {
        for (const int lanes : {1, 8}) {
          const bool lifts =
              wide == dtype &&
              (formula.denormal_results == Formula::kAlways ||
               (formula.denormal_results == Formula::kWithAvx2 && !target.HasFeature("avx512f")));
          // A scalar is converted to f16 with three others, which are arbitrary.
          if (dtype == DType::kF16 && lanes == 1) continue;
          const auto program = ReplayText(WithVectors(workload, {"Y"}, lanes));
          ASSERT_THAT(program, IsOk()) << workload;
          HONE_ASSERT_OK_AND_ASSIGN(const auto kernel, CompiledProgram::Load(*program, target));
          const int last = dtype == DType::kF16 ? 15 : f64 ? 1023 : 127;
          const int first = dtype == DType::kF16 ? -24 : f64 ? -1021 : -125;
          std::vector<std::string> slow;
          // After the exponents come values where results end: a block between each two.
          for (int block = first; block <= last + 2; ++block) {
            for (const double sign : {1.0, -1.0}) {
              Values inputs;
              while (inputs.size() < kCount) {
                const double mantissa = inputs.empty() ? 1 : 1 + rng.Uniform();
                double input = ir::RoundTo(dtype, sign * std::ldexp(mantissa, block));
                if (block == last + 1) input = sign * std::numeric_limits<double>::infinity();
                if (block == last + 2) input = ir::RoundTo(dtype, sign * 800 * rng.Uniform());
                // Conversions to f16 underflow below 2^-14, also to 0.
                const long double exact = std::fabs(formula.exact(input));
                const bool denormal = dtype == DType::kF16
                                          ? exact != 0 && exact < 0x1p-12L
                                          : !(lifts && std::fabs(input) > 1) && exact < 4 * least &&
                                                ir::RoundTo(wide, static_cast<double>(exact)) != 0;
                inputs.push_back(denormal || std::fabs(input) < least_input ? 1 : input);
              }
              const auto outputs = kernel->Run({inputs, {3.0}});
              ASSERT_THAT(outputs, IsOk());
              if (kernel->underflowed()) slow.push_back(absl::StrCat(inputs[0], "...", inputs[1]));
            }
          }
          EXPECT_TRUE(slow.empty())
              << formula.name << " in " << type << " with " << lanes << " lanes on " << target.cpu
              << ": " << absl::StrJoin(slow, " ");
        }
      }
    }
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(Functions, VectorMathTest, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(VectorMathTest, SpecialValues) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Values inputs = {0.0, -0.0, kInfinity, -kInfinity, 1.0};
  const auto run = [&](absl::string_view function) {
    const auto outputs =
        Kernel(RunnableTargets().back(), function, DType::kF32, 5, 5)->Run({inputs});
    return outputs.ok() ? (*outputs)[0] : Values();
  };
  EXPECT_THAT(run("exp"), testing::ElementsAre(1, 1, kInfinity, 0, testing::_));
  EXPECT_THAT(run("log"),
              testing::ElementsAre(-kInfinity, -kInfinity, kInfinity, testing::IsNan(), 0));
  EXPECT_THAT(run("sigmoid"), testing::ElementsAre(0.5, 0.5, 1, 0, testing::_));
  EXPECT_THAT(run("normal_cdf"), testing::ElementsAre(0.5, 0.5, 1, 0, testing::_));
  for (const absl::string_view odd : {"tanh", "erf"}) {
    const Values values = run(odd);
    EXPECT_THAT(values, testing::ElementsAre(0, 0, 1, -1, testing::_));
    EXPECT_TRUE(std::signbit(values[1]) && !std::signbit(values[0])) << odd;
  }
}

// Returns the assembly of the kernel's body.
std::string BodyOf(const target::Target& target, absl::string_view function,
                   absl::string_view dtype, int lanes) {
  const std::string workload = absl::StrCat("workload f\ninput X: ", dtype,
                                            "[4096]\noutput Y[i: 4096] = ", function, "(X[i])\n");
  const auto assembly = AssemblyOf(target, WithVectors(workload, {"Y"}, lanes));
  EXPECT_THAT(assembly, IsOk());
  if (!assembly.ok()) return "";
  const size_t begin = assembly->find("hone_main:");
  return assembly->substr(begin, assembly->find(".Lfunc_end", begin) - begin);
}

// The loop of a body, without code that it seldom jumps to.
std::string LoopOf(const std::string& body) {
  const size_t begin = body.find(".LBB0_1:");
  const size_t back = body.find("\t.LBB0_1\n", begin);
  return body.substr(begin, back == std::string::npos ? back : back - begin);
}

// There are no calls, and no registers are spilled in the loop, with vectors of the machine's
// width. Constants of the loop may be kept on the stack.
TEST(VectorMathTest, CodeIsInline) {
  for (const absl::string_view preset : {"x86-avx2", "x86-avx512"}) {
    const target::Target target = Preset(preset);
    for (const Function& function : kFunctions) {
      for (const absl::string_view dtype : {"f32", "f64", "f16", "bf16"}) {
        const std::string body =
            BodyOf(target, function.name, dtype, target.vector_bits / (dtype == "f64" ? 64 : 32));
        EXPECT_EQ(body.find("call"), std::string::npos)
            << preset << " " << dtype << " " << function.name << "\n"
            << body;
        EXPECT_THAT(LoopOf(body),
                    testing::Not(testing::ContainsRegex("%[xyz]mm[0-9]+, -?[0-9]*.%rsp")))
            << preset << " " << dtype << " " << function.name << "\n"
            << body;
      }
    }
  }
}

// Counts the vector instructions of the loop, except moves between registers, which are free.
int LoopLength(const std::string& body) {
  int count = 0;
  for (const absl::string_view text : absl::StrSplit(LoopOf(body), '\n')) {
    count += text.rfind("\tv", 0) == 0 && text.rfind("\tvmovaps\t%", 0) != 0;
  }
  return count;
}

TEST(VectorMathTest, ExpIsShort) {
  const std::string avx512 = BodyOf(Preset("x86-avx512"), "exp", "f32", 16);
  EXPECT_LE(LoopLength(avx512), 14 + 1) << "the limit includes the store\n" << avx512;
  const std::string avx2 = BodyOf(Preset("x86-avx2"), "exp", "f32", 8);
  EXPECT_LE(LoopLength(avx2), 17 + 1) << "the way of most vectors\n" << avx2;
}

}  // namespace
}  // namespace hone::codegen
