// Every dtype in loads, stores, casts, operations and reductions. Compiled code, scalar and
// vectorized, agrees with the interpreter, including at the ends of each range.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::Values;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kAll[] = {DType::kF16,  DType::kBF16,   DType::kF32,   DType::kF64,
                          DType::kI8,   DType::kU8,     DType::kI32,   DType::kI64,
                          DType::kBool, DType::kF8E4M3, DType::kF8E5M2};
constexpr DType kNumbers[] = {DType::kF16,    DType::kBF16,  DType::kF32, DType::kF64,
                              DType::kI8,     DType::kU8,    DType::kI32, DType::kI64,
                              DType::kF8E4M3, DType::kF8E5M2};

// An x86-64 CPU from 2003: no FMA, no F16C, no vectors beyond 128 bits. Missing conversions are
// computed with integer arithmetic.
target::Target Baseline() { return {.cpu = "x86-64", .vector_bits = 128}; }

std::vector<target::Target> Targets() {
  std::vector<target::Target> targets = RunnableTargets();
  targets.push_back(Baseline());
  return targets;
}

// Values of a dtype: small ones, both ends of the range, and values that other types round, wrap or
// saturate.
Values Interesting(DType dtype) {
  Values values;
  for (const double v : {0.0,
                         0.25,
                         0.5,
                         0.75,
                         1.0,
                         1.5,
                         2.0,
                         2.5,
                         3.0,
                         7.0,
                         100.0,
                         126.5,
                         127.0,
                         127.5,
                         128.0,
                         129.0,
                         200.0,
                         254.5,
                         255.0,
                         255.5,
                         256.0,
                         257.0,
                         300.7,
                         2049.0,
                         32768.0,
                         65504.0,
                         65519.0,
                         65520.0,
                         65521.0,
                         65536.0,
                         1e5,
                         16777217.0,
                         0x1p31 - 129,
                         0x1p31 - 128,
                         0x1p31 - 1,
                         0x1p31 - 0.5,
                         0x1p31,
                         0x1p31 + 1,
                         0x1p31 + 255,
                         0x1p31 + 256,
                         0x1p32 - 1,
                         0x1p32,
                         0x1p32 + 512,
                         0x1.8p33,
                         0x1.2345678p40,
                         0x1.fffffffffffffp52,
                         0x1p53,
                         0x1.123456789abcdp62,
                         0x1.fffffffffffffp62,
                         0x1p63,
                         0x1.0000000000001p63,
                         0x1.8p63,
                         0x1p64,
                         0x1.3456789abcdefp70,
                         1e30,
                         3.4e38,
                         0x1.fffffefffffffp127,
                         0x1.ffffffp127,
                         0x1.ffp127,
                         1e300,
                         0x1p-8,
                         0x1p-14,
                         0x1.ffcp-15,
                         0x1.ffep-15,
                         0x1p-24,
                         0x1p-25,
                         0x1.0000000000001p-25,
                         0x1.8p-25,
                         0x1p-26,
                         0x1.0100000000001p0,
                         0x1.0010000000001p0,
                         0x1.003p0,
                         0x1.01p0,
                         0x1.02fp0,
                         0x1p-126,
                         0x1p-127,
                         0x1p-133,
                         0x1p-134,
                         0x1.0000000000001p-134,
                         0x1p-149,
                         0x1p-150,
                         0x1.8p-150,
                         0x1p-1074}) {
    for (const double sign : {1.0, -1.0}) values.push_back(ir::CastTo(dtype, sign * v).real());
  }
  if (ir::IsFloat(dtype)) values.insert(values.end(), {kNan, kInfinity, -kInfinity, -0.0});
  // The interpreter's inputs are doubles, also those of type i64.
  if (dtype == DType::kI64) std::erase_if(values, [](double v) { return std::abs(v) > 0x1p53; });
  return values;
}

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Compares all outputs of a workload with the interpreter, with several numbers of lanes on every
// target.
void ExpectAsInterpreted(const std::string& workload_text, const std::vector<std::string>& blocks,
                         const std::vector<Values>& inputs) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(workload_text));
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
  for (const target::Target& target : Targets()) {
    for (const int lanes : {1, 8, 16}) {
      const auto actual = RunTrace(target, WithVectors(workload_text, blocks, lanes), inputs);
      ASSERT_THAT(actual, IsOk()) << workload_text << lanes << " lanes on " << target.cpu;
      for (size_t t = 0; t < expected.size(); ++t) {
        for (size_t e = 0; e < expected[t].size(); ++e) {
          const double want = expected[t][e], got = (*actual)[t][e];
          ASSERT_TRUE(Same(want, got)) << blocks[t] << "[" << e << "] is " << got << ", expected "
                                       << want << "; the inputs are " << inputs[0][e] << " and "
                                       << (inputs.size() > 1 ? inputs[1][e] : 0) << "\n"
                                       << workload_text << lanes << " lanes on " << target.cpu;
        }
      }
    }
  }
}

TEST(DTypeTest, EveryCastAgreesWithTheInterpreter) {
  for (const DType from : kAll) {
    const Values values = Interesting(from);
    std::string text =
        absl::StrCat("workload casts\ninput X: ", ir::DTypeName(from), "[", values.size(), "]\n");
    std::vector<std::string> blocks;
    for (const DType to : kAll) {
      blocks.push_back(absl::StrCat("to_", ir::DTypeName(to)));
      absl::StrAppend(&text, "output ", blocks.back(), "[i", blocks.size(), ": ", values.size(),
                      "] = ", ir::DTypeName(to), "(X[i", blocks.size(), "])\n");
    }
    ExpectAsInterpreted(text, blocks, {values});
  }
}

// A cast inside an expression rounds like a cast that is stored.
TEST(DTypeTest, CastsInsideExpressionsRound) {
  for (const DType through : kNumbers) {
    Values values = Interesting(DType::kF64);
    // A double cannot represent all i64 values beyond 2^53.
    if (through == DType::kI64)
      std::erase_if(values, [](double v) { return std::abs(v) > 0x1p53; });
    const std::string text = absl::StrCat("workload casts\ninput X: f64[", values.size(),
                                          "]\noutput Y[i: ", values.size(), "] = f64(",
                                          ir::DTypeName(through), "(X[i])) * 2.0\n");
    ExpectAsInterpreted(text, {"Y"}, {values});
  }
}

TEST(DTypeTest, EveryOperationAgreesWithTheInterpreter) {
  for (const DType dtype : kNumbers) {
    Values values = Interesting(dtype);
    // Keeps products in the range in which the interpreter is exact.
    if (dtype == DType::kI64) std::erase_if(values, [](double v) { return std::abs(v) > 0x1p26; });
    std::sort(values.begin(), values.end(),
              [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<Values> inputs(2);
    for (const double a : values) {
      for (const double b : values) {
        inputs[0].push_back(a);
        inputs[1].push_back(b);
      }
    }
    const size_t n = inputs[0].size();
    const absl::string_view name = ir::DTypeName(dtype);
    std::string text = absl::StrCat("workload operations\ninput A: ", name, "[", n,
                                    "]\ninput B: ", name, "[", n, "]\n");
    std::vector<std::string> blocks;
    const auto output = [&](absl::string_view block, absl::string_view value) {
      blocks.emplace_back(block);
      absl::StrAppend(&text, "output ", block, "[i: ", n, "] = ", value, "\n");
    };
    output("add", "A[i] + B[i]");
    output("subtract", "A[i] - B[i]");
    output("multiply", "A[i] * B[i]");
    output("divide", "A[i] / B[i]");
    output("divide_constant", "A[i] / 7");
    output("least", "min(A[i], B[i])");
    output("greatest", "max(A[i], B[i])");
    output("negate", "-A[i]");
    output("absolute", "abs(A[i])");
    output("less", "A[i] < B[i]");
    output("less_equal", "A[i] <= B[i]");
    output("equal", "A[i] == B[i]");
    output("logic", "A[i] < B[i] and not (B[i] < 3) or A[i] == B[i]");
    output("choice", "select(A[i] < B[i], B[i], A[i] - B[i])");
    output("count", "i32(A[i] < B[i]) + i32(index(i))");
    if (ir::IsFloat(dtype)) {
      for (const absl::string_view function : {"round", "floor", "ceil", "trunc"}) {
        output(function, absl::StrCat(function, "(A[i])"));
      }
    } else {
      output("shift_left", "A[i] << B[i]");
      output("shift_right", "A[i] >> B[i]");
      output("shift_constants", "(A[i] << 3) >> 5");
      output("shift_out", "(A[i] >> 100) - (A[i] << 100)");
    }
    ExpectAsInterpreted(text, blocks, inputs);
  }
}

TEST(DTypeTest, BooleansInMemory) {
  Values a, b;
  for (int i = 0; i < 67; ++i) {
    a.push_back(i % 2);
    b.push_back(i % 3 == 0);
  }
  ExpectAsInterpreted(
      "workload booleans\ninput A: bool[67]\ninput B: bool[67]\noutput both[i: 67] = A[i] and "
      "B[i]\noutput same[i: 67] = A[i] == B[i]\n"
      "output neither[i: 67] = not (A[i] or B[i])\noutput pick[i: 67] = select(A[i], f32(B[i]), "
      "5.0)\n",
      {"both", "same", "neither", "pick"}, {a, b});
}

// The lanes are rows, the reduction is a loop, and its result stays in registers unless it is a
// tuple.
std::string RowsAsLanes(absl::string_view workload, absl::string_view block, int lanes) {
  if (lanes == 1) return absl::StrCat(workload, "trace 1\n");
  return absl::StrCat(workload, "trace 1\nb0 = block(\"", block,
                      "\")\nl0, l1 = loops(b0)\nl2, l3 = split(l0, 0, ", lanes,
                      ")\nreorder(l2, l1, l3)\nvectorize(l3)\n");
}

void ExpectReduction(const std::string& text, absl::string_view block,
                     const std::vector<Values>& inputs, double tolerance) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
  for (const target::Target& target : Targets()) {
    for (const int lanes : {1, 4, 16}) {
      const auto actual = RunTrace(target, RowsAsLanes(text, block, lanes), inputs);
      ASSERT_THAT(actual, IsOk()) << text;
      for (size_t t = 0; t < expected.size(); ++t) {
        for (size_t e = 0; e < expected[t].size(); ++e) {
          const double want = expected[t][e], got = (*actual)[t][e];
          ASSERT_TRUE(Same(want, got) || std::abs(want - got) <= tolerance * std::abs(want))
              << "output " << t << "[" << e << "] is " << got << ", expected " << want << "\n"
              << text << lanes << " lanes on " << target.cpu;
        }
      }
    }
  }
}

Values Pattern(DType dtype, int64_t n, double scale) {
  Values values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(ir::CastTo(dtype, static_cast<double>(i * 37 % 101 - 50) * scale).real());
  return values;
}

TEST(DTypeTest, Reductions) {
  for (const DType dtype : kNumbers) {
    const std::string input =
        absl::StrCat("workload reduction\ninput X: ", ir::DTypeName(dtype), "[21, 13]\n");
    const std::vector<Values> inputs = {Pattern(dtype, 21 * 13, 1)};
    for (const absl::string_view reducer : {"sum", "min", "max"}) {
      ExpectReduction(absl::StrCat(input, "output Y[i: 21] = ", reducer, "(k: 13) X[i, k]\n"), "Y",
                      inputs, 0);
    }
    for (const absl::string_view reducer : {"argmax", "argmin"}) {
      for (const absl::string_view index : {"index(k)", "i32(index(k))"}) {
        ExpectReduction(absl::StrCat(input, "output (V, I)[i: 21] = ", reducer,
                                     "(k: 13) (X[i, k], ", index, ")\n"),
                        "V", inputs, 0);
      }
    }
  }
}

TEST(DTypeTest, ArgmaxTakesTheFirstOfEqualsAndSkipsNothing) {
  Values inputs = Pattern(DType::kF32, 21 * 13, 0);
  for (int i = 0; i < 13; ++i) inputs[i] = -kInfinity;
  ExpectReduction(
      "workload ties\ninput X: f32[21, 13]\noutput (V, I)[i: 21] = argmax(k: 13) (X[i, k], "
      "index(k))\n",
      "V", {inputs}, 0);
}

TEST(DTypeTest, OnlineSoftmax) {
  for (const auto& [dtype, tolerance] : {std::pair{DType::kF32, 1e-6},
                                         {DType::kF64, 1e-14},
                                         {DType::kF16, 1e-6},
                                         {DType::kBF16, 1e-6}}) {
    Values inputs = Pattern(dtype, 21 * 13, 0.5);
    inputs[0] = -kInfinity;
    inputs[5] = -kInfinity;
    ExpectReduction(absl::StrCat("workload online\ninput X: ", ir::DTypeName(dtype),
                                 "[21, 13]\noutput (M, S)[i: 21] = online_softmax(k: 13) (",
                                 ir::DTypeName(ir::AccumulatorOf(dtype)), "(X[i, k]), 1.0)\n"),
                    "M", {inputs}, tolerance);
  }
}

// Lanes outside the guard keep their maximum: the padding does not count as 0.
TEST(DTypeTest, GuardedMaximumInRegisters) {
  const std::string text =
      "workload pool\ninput X: f32[21, 37]\noutput Y[h: 21, w: 37] = max(r: 3, s: 3 where 0 <= h + "
      "r - 1 < 21, 0 <= w + s - 1 < 37) X[h + r - 1, w + s - 1]\n";
  Values inputs = Pattern(DType::kF32, 21 * 37, 1);
  for (double& value : inputs) value -= 1000;
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(*ir::ParseWorkload(text), {inputs}));
  for (const target::Target& target : Targets()) {
    for (const absl::string_view order : {"l0, l4, l2, l3, l5", "l0, l2, l3, l4, l5"}) {
      HONE_ASSERT_OK_AND_ASSIGN(
          const auto actual, RunTrace(target,
                                      absl::StrCat(text,
                                                   "trace 1\nb0 = block(\"Y\")\nl0, l1, l2, l3 = "
                                                   "loops(b0)\nl4, l5 = split(l1, 0, 16)\nreorder(",
                                                   order, ")\nvectorize(l5)\n"),
                                      {inputs}));
      EXPECT_EQ(actual[0], expected[0]) << order;
    }
  }
}

}  // namespace
}  // namespace hone::codegen
