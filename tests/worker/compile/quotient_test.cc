// The sign of a zero quotient when a vector is divided by one number, which is computed with a
// reciprocal and a correction, and where it is not. tests/worker/compile/invariant_test.cc tests
// other quotients.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ir::Values;

// Returns a trace that vectorizes each row by `lanes`.
std::string Vectors(int lanes) {
  std::string trace = "trace 1\n";
  for (const int b : {0, 1}) {
    absl::StrAppend(&trace, "b", b, " = block(\"", b == 0 ? "Y" : "Z", "\")\nl", 4 * b, ", l",
                    4 * b + 1, " = loops(b", b, ")\nl", 4 * b + 2, ", l", 4 * b + 3, " = split(l",
                    4 * b + 1, ", 0, ", lanes, ")\nvectorize(l", 4 * b + 3, ")\n");
  }
  return trace;
}

TEST(QuotientTest, AZeroHasItsSign) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const bool f64 : {false, true}) {
    const double least = f64 ? 0x1p-1074 : 0x1p-149, large = f64 ? 0x1p1023 : 0x1p127;
    Values numerators, divisors;
    for (const double sign : {1.0, -1.0}) {
      for (const double x : {0.0, least, 3 * least, 1.0}) numerators.push_back(sign * x);
      for (const double v : {least, 0.3, 1.0, 3.0, 16777215.0, large, kInfinity})
        divisors.push_back(sign * v);
    }
    const size_t columns = numerators.size(), rows = divisors.size();
    std::vector<Values> inputs = {{}, divisors};
    for (double& v : inputs[1]) v = ir::RoundTo(f64 ? ir::DType::kF64 : ir::DType::kF32, v);
    for (size_t i = 0; i < rows; ++i)
      inputs[0].insert(inputs[0].end(), numerators.begin(), numerators.end());
    const std::string dtype = f64 ? "f64" : "f32";
    const std::string workload = absl::StrCat(
        "workload w\ninput X: ", dtype, "[", rows, ", ", columns, "]\ninput V: ", dtype, "[", rows,
        "]\noutput Y[i: ", rows, ", j: ", columns, "] = X[i, j] / V[i]\noutput Z[i: ", rows,
        ", j: ", columns, "] = (X[i, j] * 0.0) / V[i]\n");
    for (const target::Target& target : RunnableTargets()) {
      for (const int lanes : {2, 4, 8}) {
        HONE_ASSERT_OK_AND_ASSIGN(const auto actual,
                                  RunTrace(target, absl::StrCat(workload, Vectors(lanes)), inputs));
        for (size_t e = 0; e < rows * columns; ++e) {
          const double x = inputs[0][e], v = inputs[1][e / columns];
          EXPECT_EQ(std::signbit(actual[0][e]), std::signbit(x / v))
              << dtype << ": " << x << " / " << v << " gives " << actual[0][e];
          EXPECT_EQ(actual[1][e], 0);
          EXPECT_EQ(std::signbit(actual[1][e]), std::signbit(x * 0.0 / v))
              << dtype << ": " << x * 0.0 << " / " << v << " gives " << actual[1][e];
        }
      }
    }
  }
}

// On Zen, the divider is faster than the reciprocal with its correction.
TEST(QuotientTest, OnlyZenDividesVectors) {
  const std::string trace = WithVectors(
      "workload w\ninput X: f32[4096]\ninput V: f32[1]\noutput Y[i: 4096] = X[i] / V[0]\n", {"Y"},
      8);
  target::Target target = Preset("x86-avx2");
  const auto divides = testing::ContainsRegex("vdivps\t[^\n]*%ymm");
  HONE_ASSERT_OK_AND_ASSIGN(const std::string other, AssemblyOf(target, trace));
  EXPECT_THAT(other, testing::Not(divides));
  target.cpu = "znver1";
  HONE_ASSERT_OK_AND_ASSIGN(const std::string zen, AssemblyOf(target, trace));
  EXPECT_THAT(zen, divides);
}

}  // namespace
}  // namespace hone::codegen
