// Reductions over the lanes of a vector: every reducer and type, whole vectors and tails, compared
// with the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ir::Values;

constexpr int64_t kRows = 5, kColumns = 77;

// Combine the lanes at each step, or keep a partial result in each lane and combine them at the
// end.
constexpr absl::string_view kVectorized[] = {
    "vectorize(l3)\n", "b1 = rfactor(b0, l3)\nvectorize(l3)\nl4, l5 = loops(b0)\nvectorize(l5)\n"};

// Small whole numbers, so that sums are exact in any order; for products mostly 1 and -1, and a few
// 2.
Values Numbers(absl::string_view reducer, bool is_signed) {
  Values values;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    if (reducer == "prod") {
      values.push_back(i % 19 == 3 ? 2 : is_signed && i % 5 == 0 ? -1 : 1);
    } else {
      values.push_back(i * 29 % 23 - (is_signed ? 11 : 0));
    }
  }
  return values;
}

TEST(LaneReductionTest, AgreesWithTheInterpreter) {
  for (const absl::string_view reducer : {"sum", "prod", "min", "max"}) {
    for (const absl::string_view dtype : {"f32", "f64", "i8", "u8", "i32", "i64"}) {
      const std::string text =
          absl::StrCat("workload w\ninput X: ", dtype, "[", kRows, ", ", kColumns,
                       "]\noutput Y[i: ", kRows, "] = ", reducer, "(k: ", kColumns, ") X[i, k]\n");
      HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
      const std::vector<Values> inputs = {Numbers(reducer, dtype != "u8")};
      HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
      for (const target::Target& target : RunnableTargets()) {
        for (const int lanes : {3, 7, 8, 11, 16, 24, 64}) {
          for (const absl::string_view rest : kVectorized) {
            HONE_ASSERT_OK_AND_ASSIGN(
                const auto actual,
                RunTrace(
                    target,
                    absl::StrCat(
                        text,
                        "trace 1\nb0 = block(\"Y\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, ",
                        lanes, ")\n", rest),
                    inputs));
            EXPECT_EQ(actual[0], expected[0]) << reducer << " of " << dtype << " over " << lanes
                                              << " lanes on " << target.cpu << "\n"
                                              << rest;
          }
        }
      }
    }
  }
}

// The lower index wins ties, whichever lanes have them.
TEST(LaneReductionTest, TuplesAgreeWithTheInterpreter) {
  for (const absl::string_view reducer : {"argmax", "argmin"}) {
    for (const absl::string_view dtype : {"f16", "f32", "f64", "i8", "i32", "i64"}) {
      for (const absl::string_view index : {"index(k)", "i32(index(k))"}) {
        const std::string text =
            absl::StrCat("workload w\ninput X: ", dtype, "[", kRows, ", ", kColumns,
                         "]\noutput (Y, I)[i: ", kRows, "] = ", reducer, "(k: ", kColumns,
                         ") (X[i, k], ", index, ")\n");
        HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
        const std::vector<Values> inputs = {Numbers(reducer, true)};
        HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
        for (const target::Target& target : RunnableTargets()) {
          for (const int lanes : {7, 16, 64}) {
            for (const absl::string_view rest : kVectorized) {
              HONE_ASSERT_OK_AND_ASSIGN(
                  const auto actual,
                  RunTrace(target,
                           absl::StrCat(text, "trace 1\nb0 = block(\"Y\")\nl0, l1 = loops(b0)\n",
                                        "l2, l3 = split(l1, 0, ", lanes, ")\n", rest),
                           inputs));
              EXPECT_EQ(actual, expected) << reducer << " of " << dtype << " over " << lanes
                                          << " lanes on " << target.cpu << "\n"
                                          << rest;
            }
          }
        }
      }
    }
  }
}

TEST(LaneReductionTest, AnOnlineSoftmaxAgreesWithTheInterpreter) {
  const std::string text = absl::StrCat("workload w\ninput X: f32[", kRows, ", ", kColumns,
                                        "]\noutput (M, S)[i: ", kRows,
                                        "] = online_softmax(k: ", kColumns, ") (X[i, k], 1.0)\n");
  std::vector<Values> inputs = {Numbers("online_softmax", true)};
  inputs[0][3] = inputs[0][kColumns] = -std::numeric_limits<double>::infinity();
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
  for (const target::Target& target : RunnableTargets()) {
    for (const int lanes : {2, 7, 16}) {
      for (const absl::string_view rest : kVectorized) {
        HONE_ASSERT_OK_AND_ASSIGN(
            const auto actual,
            RunTrace(target,
                     absl::StrCat(text, "trace 1\nb0 = block(\"M\")\nl0, l1 = loops(b0)\n",
                                  "l2, l3 = split(l1, 0, ", lanes, ")\n", rest),
                     inputs));
        EXPECT_EQ(actual[0], expected[0]);
        for (int64_t i = 0; i < kRows; ++i)
          EXPECT_NEAR(actual[1][i], expected[1][i], 1e-5 * expected[1][i]) << rest;
      }
    }
  }
}

// Maxima and minima, also with their indices, ignore NaN in any lane.
TEST(LaneReductionTest, NanIsIgnoredInEveryLane) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const absl::string_view reducer : {"min", "max", "argmin", "argmax"}) {
    for (const absl::string_view dtype : {"f16", "f32", "f64"}) {
      const bool tuple = absl::StartsWith(reducer, "arg");
      const std::string text =
          absl::StrCat("workload w\ninput X: ", dtype, "[", kRows, ", ", kColumns, "]\noutput ",
                       tuple ? "(Y, I)" : "Y", "[i: ", kRows, "] = ", reducer, "(k: ", kColumns,
                       ") ", tuple ? "(X[i, k], index(k))" : "X[i, k]", "\n");
      HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
      std::vector<Values> inputs = {Values(kRows * kColumns, kNan)};
      for (int64_t row = 0; row + 1 < kRows; ++row) {  // the last row has only NaN
        inputs[0][row * kColumns + 11 * row + 8] = static_cast<double>(row) - 2;
        inputs[0][row * kColumns + 70] = 3 - static_cast<double>(row);
      }
      HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
      for (const target::Target& target : RunnableTargets()) {
        for (const int lanes : {2, 7, 16, 64}) {
          HONE_ASSERT_OK_AND_ASSIGN(
              const auto actual,
              RunTrace(target,
                       absl::StrCat(text, "trace 1\nb0 = block(\"Y\")\nl0, l1 = loops(b0)\n",
                                    "l2, l3 = split(l1, 0, ", lanes, ")\nvectorize(l3)\n"),
                       inputs));
          EXPECT_EQ(actual, expected)
              << reducer << " of " << dtype << " over " << lanes << " lanes on " << target.cpu;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hone::codegen
