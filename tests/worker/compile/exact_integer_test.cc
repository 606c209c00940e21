// 64-bit integers in compiled code, including values that a double cannot represent.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ir::Scalar;
using ir::Scalars;

constexpr int64_t kElements = 95;

// Neighbours of powers of two up to the ends of the range, and numbers of every size.
Scalars LargeIntegers(uint64_t seed) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Scalars values = {kLeast,
                    kLeast + 1,
                    kMost,
                    kMost - 1,
                    (int64_t{1} << 53) + 1,
                    -(int64_t{1} << 53) - 1,
                    (int64_t{1} << 60) + (int64_t{1} << 52) + 1};
  Rng rng(seed);
  while (static_cast<int64_t>(values.size()) < kElements) {
    values.push_back(static_cast<int64_t>(rng()) >> rng.Below(64));
  }
  return values;
}

// `scheduled` returns the text with a trace for the given number of lanes.
void ExpectAsInterpreted(const std::string& text,
                         const std::function<std::string(int lanes)>& scheduled) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
  std::vector<Scalars> inputs;
  for (size_t i = 0; i < workload.Inputs().size(); ++i) inputs.push_back(LargeIntegers(i));
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
  for (const target::Target& target : RunnableTargets()) {
    for (const int lanes : {1, 4, 16}) {
      HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(scheduled(lanes)));
      HONE_ASSERT_OK_AND_ASSIGN(const auto compiled, CompiledProgram::Load(program, target));
      HONE_ASSERT_OK_AND_ASSIGN(const auto actual, compiled->Run(inputs));
      for (size_t t = 0; t < expected.size(); ++t) {
        for (size_t e = 0; e < expected[t].size(); ++e) {
          ASSERT_EQ(actual[t][e], expected[t][e])
              << "output " << t << "[" << e << "], " << lanes << " lanes on " << target.cpu;
        }
      }
    }
  }
}

TEST(ExactIntegerTest, ArithmeticConstantsAndCasts) {
  const std::vector<std::pair<std::string, std::string>> outputs = {
      {"add", "A[i] + 9007199254740993"},
      {"subtract", "A[i] - B[i]"},
      {"multiply", "A[i] * 3037000501"},
      {"divide", "A[i] / 9007199254740993"},
      {"quotient", "A[i] / B[i]"},
      {"least", "min(A[i], -9223372036854775807)"},
      {"most", "max(A[i], 9223372036854775806)"},
      {"same", "i32(A[i] == 9007199254740993)"},
      {"less", "i32(A[i] < B[i])"},
      {"single", "f32(A[i])"},
      {"real", "f64(A[i])"},
      {"brain", "bf16(A[i])"},
      {"half", "f16(A[i] / 4398046511104)"},
      {"small", "i8(A[i])"},
  };
  std::string text =
      absl::StrCat("workload w\ninput A: i64[", kElements, "]\ninput B: i64[", kElements, "]\n");
  std::vector<std::string> blocks;
  for (const auto& [block, value] : outputs) {
    blocks.push_back(block);
    absl::StrAppend(&text, "output ", block, "[i: ", kElements, "] = ", value, "\n");
  }
  ExpectAsInterpreted(text, [&](int lanes) { return WithVectors(text, blocks, lanes); });
}

// The lanes are rows, and the reduction is a loop.
void ExpectReduced(const std::string& text, absl::string_view block) {
  ExpectAsInterpreted(text, [&](int lanes) {
    if (lanes == 1) return absl::StrCat(text, "trace 1\n");
    return absl::StrCat(text, "trace 1\nb0 = block(\"", block,
                        "\")\nl0, l1 = loops(b0)\nl2, l3 = split(l0, 0, ", lanes,
                        ")\nreorder(l2, l1, l3)\nvectorize(l3)\n");
  });
}

TEST(ExactIntegerTest, Reductions) {
  for (const absl::string_view reducer : {"sum", "prod", "min", "max"}) {
    ExpectReduced(absl::StrCat("workload w\ninput A: i64[19, 5]\noutput Y[i: 19] = ", reducer,
                               "(k: 5) A[i, k]\n"),
                  "Y");
  }
  for (const absl::string_view reducer : {"argmin", "argmax"}) {
    ExpectReduced(absl::StrCat("workload w\ninput A: i64[19, 5]\noutput (V, P)[i: 19] = ", reducer,
                               "(k: 5) (A[i, k], i32(index(k)))\n"),
                  "V");
  }
}

}  // namespace
}  // namespace hone::codegen
