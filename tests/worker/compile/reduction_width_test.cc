// Reductions and irregular loads over any number of lanes, of every type: the code has about as few
// instructions, and moves about as few single lanes, as that for the next power of two.
// vector_width_test.cc tests conversions, functions and regular loads.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

constexpr int kSteps = 8;  // of the vectorized loop

// What the code of a program does.
struct WidthCost {
  int instructions = 0;
  int moves = 0;  // instructions that move lanes between vectors, or between vectors and scalars
  int calls = 0;
};

WidthCost CostOfCode(absl::string_view assembly) {
  static constexpr absl::string_view kX86[] = {"vinsert", "vpinsr", "vpextr",  "vextract", "vperm",
                                               "vshuf",   "vpshuf", "vunpck",  "vpunpck",  "vmovd",
                                               "vmovq",   "valign", "vpalign", "vpack"};
  static constexpr absl::string_view kArm[] = {"zip", "uzp", "trn", "ext",  "tbl",
                                               "tbx", "dup", "ins", "umov", "smov"};
  const size_t begin = assembly.find("hone_main:");
  if (begin == absl::string_view::npos) return {};
  assembly = assembly.substr(begin, assembly.find(".Lfunc_end", begin) - begin);
  WidthCost cost;
  for (const absl::string_view line : absl::StrSplit(assembly, '\n')) {
    if (!absl::StartsWith(line, "\t") || absl::StartsWith(line, "\t.")) continue;
    const absl::string_view name = line.substr(1, line.find('\t', 1) - 1);
    ++cost.instructions;
    const bool x86 = std::any_of(std::begin(kX86), std::end(kX86), [&](absl::string_view prefix) {
      return absl::StartsWith(name, prefix);
    });
    const bool arm = std::any_of(std::begin(kArm), std::end(kArm), [&](absl::string_view prefix) {
      return absl::StartsWith(name, prefix);
    });
    // mov v0.s[1], v2.s[3] and ld1 { v0.s }[1], [x8]
    const bool lane = (name == "mov" || name == "ld1" || name == "st1") &&
                      (absl::StrContains(line, "s[") || absl::StrContains(line, "h[") ||
                       absl::StrContains(line, "b[") || absl::StrContains(line, "d[") ||
                       absl::StrContains(line, "}["));
    cost.moves += x86 || arm || lane;
    cost.calls += absl::StartsWith(name, "call") || name == "bl";
  }
  return cost;
}

std::vector<target::Target> WidthTargets() {
  const target::Target arm{.arch = "aarch64",
                           .triple = "aarch64-unknown-linux-gnu",
                           .cpu = "cortex-a76",
                           .features = {"dotprod", "fullfp16", "neon"},
                           .vector_bits = 128,
                           .vector_registers = 32};
  return {Preset("x86-avx2"), Preset("x86-avx512"), arm};
}

// A kind of code: a workload in which N stands for the number of elements of a row, and the
// schedule of its output for L lanes.
struct Kind {
  std::string name, workload, schedule;
  bool irregular = false;  // the distances between the lanes may differ between steps
};

constexpr absl::string_view kColumnwise =
    "b0 = block(\"Y\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, L)\nvectorize(l3)\n";
constexpr absl::string_view kPartial =
    "b0 = block(\"Y\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, L)\nb1 = rfactor(b0, l3)\n"
    "vectorize(l3)\nl4, l5 = loops(b0)\nvectorize(l5)\n";

std::vector<Kind> KindsOf(absl::string_view dtype) {
  std::vector<Kind> kinds;
  const auto add = [&](absl::string_view name, absl::string_view output,
                       absl::string_view schedule) {
    Kind kind{.name = absl::StrCat(name, " of ", dtype),
              .workload = absl::StrCat("workload w\ninput A: ", dtype, "[4, 5 * N]\ninput B: ",
                                       dtype, "[4, N]\ninput G: i32[N]\n", output, "\n"),
              .schedule = absl::StrCat("trace 1\n", schedule)};
    // Not every dtype has every operation.
    const std::string small =
        absl::StrReplaceAll(kind.workload, {{"5 * N", "320"}, {"4 * N", "256"}, {"N", "64"}});
    const auto parsed = ir::ParseWorkload(small);
    if (parsed.ok()) kinds.push_back(std::move(kind));
  };
  const auto map = [&](absl::string_view name, absl::string_view value) {
    add(name, absl::StrCat("output Y[i: 4, j: N] = ", value), kColumnwise);
  };
  const size_t regular = kinds.size();
  map("repetition", "A[i, j / 2]");
  map("interleaving", "A[i, j % 2 * N + j / 2]");
  map("gather", "A[i, at(G[j])]");
  for (size_t k = regular; k < kinds.size(); ++k) kinds[k].irregular = true;
  // Partial results of short floats are f32.
  const bool is_short = absl::EndsWith(dtype, "f16");
  const std::string value = is_short ? "f32(A[i, j])" : "A[i, j]";
  const std::string difference = absl::StrCat(is_short ? "f32" : "", "(A[i, j] - A[i, 0])");
  for (const char* const reducer : {"sum", "prod", "min", "max"}) {
    for (const auto& [how, schedule] :
         {std::pair("lanes", kColumnwise), std::pair("partial results", kPartial)}) {
      add(absl::StrCat(reducer, " in ", how),
          absl::StrCat("output Y[i: 4] = ", reducer, "(j: N) ", difference), schedule);
    }
  }
  for (const char* const reducer : {"argmax", "argmin"}) {
    for (const auto& [how, schedule] :
         {std::pair("lanes", kColumnwise), std::pair("partial results", kPartial)}) {
      add(absl::StrCat(reducer, " in ", how),
          absl::StrCat("output (Y, I)[i: 4] = ", reducer, "(j: N) (", value, ", i32(index(j)))"),
          schedule);
    }
  }
  for (const auto& [how, schedule] :
       {std::pair("lanes", kColumnwise), std::pair("partial results", kPartial)}) {
    add(absl::StrCat("online_softmax in ", how),
        absl::StrCat("output (Y, S)[i: 4] = online_softmax(j: N) (", value, ", 1.0)"), schedule);
  }
  return kinds;
}

absl::StatusOr<WidthCost> CostOf(const target::Target& target, const Kind& kind, int lanes) {
  const int n = kSteps * lanes;
  HONE_ASSIGN_OR_RETURN(
      const std::string assembly,
      AssemblyOf(target, absl::StrReplaceAll(absl::StrCat(kind.workload, kind.schedule),
                                             {{"5 * N", absl::StrCat(5 * n)},
                                              {"N", absl::StrCat(n)},
                                              {"L", absl::StrCat(lanes)}})));
  return CostOfCode(assembly);
}

class ReductionWidthTest : public testing::TestWithParam<const char*> {};

// Compares a width with the next power of two, and a power of two with its half. Each kind of code
// is compiled for every target at one width; the widths take turns. HONE_ALL_WIDTHS=1 compiles
// every width, which takes long.
TEST_P(ReductionWidthTest, CostsAboutAsMuchAsWholeRegisters) {
  const bool all = std::getenv("HONE_ALL_WIDTHS") != nullptr;
  const std::vector<Kind> kinds = KindsOf(GetParam());
  const std::vector<target::Target> targets = WidthTargets();
  EXPECT_GE(kinds.size(), 13u);
  const size_t offset = absl::string_view(GetParam()).front() + kinds[0].name.size();
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Kind& kind = kinds[k];
    for (size_t t = 0; t < targets.size(); ++t) {
      for (int lanes = 2; lanes <= 64; ++lanes) {
        if (!all && lanes != 2 + static_cast<int>(29 * (3 * k + t) + offset) % 63) continue;
        const bool whole = std::has_single_bit(static_cast<unsigned>(lanes));
        const int other =
            whole ? lanes / 2 : static_cast<int>(std::bit_ceil(static_cast<unsigned>(lanes)));
        const auto cost = CostOf(targets[t], kind, lanes);
        const auto bound = CostOf(targets[t], kind, other);
        ASSERT_THAT(cost, IsOk()) << kind.name << ", " << lanes << " lanes";
        ASSERT_THAT(bound, IsOk()) << kind.name << ", " << other << " lanes";
        const std::string at =
            absl::StrCat(kind.name, ", ", lanes, " and ", other, " lanes on ", targets[t].cpu, ": ",
                         cost->instructions, " and ", bound->instructions, " instructions");
        // Twice the lanes may need values that do not fit the registers.
        const double ratio = whole ? 3.2 : 1.75;
        // Lanes whose distances differ between the steps are loaded one by one.
        const int single = kind.irregular && !whole ? 3 * lanes : 0;
        EXPECT_LE(cost->instructions, ratio * bound->instructions + 48 + 2 * single) << at;
        EXPECT_LE(cost->moves, ratio * bound->moves + 24 + bound->instructions / 8 + single)
            << at << ", with " << cost->moves << " and " << bound->moves << " moves of lanes";
        EXPECT_EQ(cost->calls, 0) << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ReductionWidthTest,
                         testing::Values("f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64"),
                         [](const auto& info) { return std::string(info.param); });

// LLVM ended the process at these: it cannot insert vectors of one lane, with which the combination
// of partial results ends, and its pattern for products of bytes crashed.
TEST(ReductionCrashTest, EveryTargetCompiles) {
  const auto check = [](const Kind& kind, const std::vector<int>& widths) {
    for (const target::Target& target : WidthTargets()) {
      for (const int lanes : widths) {
        const auto cost = CostOf(target, kind, lanes);
        ASSERT_THAT(cost, IsOk()) << kind.name << target.cpu << lanes;
        EXPECT_EQ(cost->calls, 0);
      }
    }
  };
  for (const absl::string_view dtype : {"f32", "i8", "u8"}) {
    for (const Kind& kind : KindsOf(dtype)) {
      if (kind.name == "online_softmax in partial results of f32") check(kind, {2, 3, 8, 17});
      if (absl::StartsWith(kind.name, "prod in lanes of ") && dtype != "f32")
        check(kind, {3, 5, 9, 10, 12, 17, 24, 40});
    }
  }
}

}  // namespace
}  // namespace hone::codegen
