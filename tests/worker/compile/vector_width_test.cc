// Code for vectors of any number of lanes: no width, element type, operation or access may be taken
// apart into single lanes. LLVM alone does that to vectors whose number of lanes is not a power of
// two where they cross from one block to another.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

// What a piece of assembly consists of.
struct Counts {
  int instructions = 0;
  int lane_moves = 0;  // single lanes in and out of vectors, and calls
};
Counts CountsOf(absl::string_view assembly) {
  static constexpr absl::string_view kMoves[] = {"\tvinsertps\t",  "\tvpinsr", "\tvpextr",
                                                 "\tvextractps\t", "\tcall",   "\tbl\t"};
  Counts counts;
  for (const absl::string_view line : absl::StrSplit(assembly, '\n')) {
    counts.instructions += absl::StartsWith(line, "\t") && !absl::StartsWith(line, "\t.");
    // On ARM: mov v0.s[1], v2.s[3].
    counts.lane_moves += (absl::StartsWith(line, "\tmov\tv") && absl::StrContains(line, "[")) ||
                         std::any_of(std::begin(kMoves), std::end(kMoves),
                                     [&](auto name) { return absl::StartsWith(line, name); });
  }
  return counts;
}

class VectorWidthTest : public testing::TestWithParam<target::Target> {
 protected:
  // The loop of a kernel with an input of `type` that computes an expression, in vectors. N stands
  // for the number of its elements.
  static Counts LoopWith(const std::string& type, const std::string& expression, int lanes) {
    const int elements = 8 * lanes;
    const std::string text = absl::StrCat(
        "workload w\ninput X: ", type, "[", 5 * elements + 8, "]\noutput Y[i: ", elements,
        "] = ", absl::StrReplaceAll(expression, {{"N", absl::StrCat(elements)}}), "\n");
    const auto assembly = AssemblyOf(GetParam(), WithVectors(text, {"Y"}, lanes));
    EXPECT_THAT(assembly, IsOk()) << text;
    if (!assembly.ok()) return {};
    const size_t begin = assembly->find("\n.LBB", assembly->find("hone_main:"));
    return CountsOf(assembly->substr(begin, assembly->find(".Lfunc_end", begin) - begin));
  }

  // The code for some lanes is hardly longer than that for the next power of two.
  static void CheckWidth(const std::string& type, const std::string& expression, int lanes) {
    const Counts counts = LoopWith(type, expression, lanes);
    const Counts full =
        LoopWith(type, expression, static_cast<int>(std::bit_ceil(static_cast<unsigned>(lanes))));
    // A part of a register takes some more instructions to load and store.
    const int partial = 8 * lanes < GetParam().vector_bits ? 12 : 4;
    EXPECT_TRUE(counts.lane_moves <= full.lane_moves + partial &&
                counts.instructions <= full.instructions + 2 * partial)
        << expression << " of " << type << ", " << lanes << " lanes on " << GetParam().cpu << ": "
        << counts.instructions << " instructions and " << counts.lane_moves
        << " moves of lanes, but " << full.instructions << " and " << full.lane_moves
        << " for full registers";
  }
};

TEST_P(VectorWidthTest, Reductions) {
  for (const int lanes : {3, 12, 20, 24, 40, 48}) {
    for (const char* dtype : {"f32", "f64", "f16", "bf16", "i32", "i8"}) {
      for (const char* reducer : {"sum", "max"}) {
        // Partial results of short floats are f32.
        const bool is_short = absl::StrContains(dtype, "f16");
        const std::string value = absl::StrCat(is_short ? "f32(" : "(", "X[i, k] - X[i, 0])");
        const std::string text = absl::StrCat(
            "workload w\ninput X: ", dtype, "[4, ", 8 * lanes, "]\noutput Y[i: 4] = ", reducer,
            "(k: ", 8 * lanes, ") ", value,
            "\ntrace 1\nb0 = block(\"Y\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, ", lanes,
            ")\nb1 = rfactor(b0, l3)\nvectorize(l3)\nl4, l5 = loops(b0)\nvectorize(l5)\n");
        const auto assembly = AssemblyOf(GetParam(), text);
        ASSERT_THAT(assembly, IsOk()) << text;
        EXPECT_LE(CountsOf(*assembly).lane_moves, 9)  // with a call of the function
            << reducer << " of " << dtype << ", " << lanes << " lanes, " << GetParam().cpu;
      }
    }
  }
}

TEST_P(VectorWidthTest, Conversions) {
  static constexpr const char* kTypes[] = {"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64"};
  for (const std::string from : kTypes) {
    for (const std::string to : kTypes) {
      if (from == to) continue;
      for (const int lanes : {12, 40}) CheckWidth(from, absl::StrCat(to, "(X[i])"), lanes);
    }
  }
}

TEST_P(VectorWidthTest, Functions) {
  for (const std::string type : {"f32", "f64", "f16", "bf16"}) {
    for (const char* const function : {"exp", "log", "tanh", "erf", "normal_cdf", "sigmoid",
                                       "rsqrt", "sqrt", "round", "floor", "abs"})
      CheckWidth(type, absl::StrCat(function, "(X[i])"), type == "f64" ? 12 : 24);
    if (type == "f32") CheckWidth(type, "pow(X[i], 1.7)", 12);
  }
}

TEST_P(VectorWidthTest, Accesses) {
  for (const std::string type : {"f32", "f64", "f16", "bf16", "i8", "i32", "i64"}) {
    for (const char* const expression :
         {"X[2*i]", "X[3*i]", "X[4*N - i]", "X[i / 3]", "X[i + 1] + X[i]", "min(X[i], X[2*i])",
          "select(X[i] < X[i + 1], X[i], X[i + 2])", "(X[i] where i < N - 3 else X[i + 1])"}) {
      for (const int lanes : {7, 12, 40}) CheckWidth(type, expression, lanes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, VectorWidthTest,
                         testing::Values(Preset("x86-avx2"), Preset("x86-avx512"),
                                         target::Target{.arch = "aarch64",
                                                        .triple = "aarch64-unknown-linux-gnu",
                                                        .cpu = "cortex-a76",
                                                        .features = {"dotprod", "fullfp16", "neon"},
                                                        .vector_bits = 128,
                                                        .vector_registers = 32}),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param.cpu, {{"-", "_"}});
                         });

}  // namespace
}  // namespace hone::codegen
