// Reads the assembly of products that use AMX tiles. tests/server/tuner/space/amx_test.cc checks
// the results.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/llvm/modelled_cost.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

// A product of m × n × 1024 with `rows` × `columns` tiles of sums in registers. `unroll` terms of
// an instruction are unrolled; 0: those of the whole sum.
struct TileProduct {
  const char *left, *right, *sum, *instruction;
  int terms = 64;
  int rows = 2, columns = 2, unroll = 1;
  int k = 1024;
};

std::string TraceOf(const TileProduct& p) {
  const int group = p.terms / 16;
  return absl::StrCat(
      "workload w\ninput A: ", p.left, "[", 64 * p.rows, ", ", p.k, "]\ninput B: ", p.right, "[",
      p.k, ", ", 32 * p.columns, "] constant\noutput C[i: ", 64 * p.rows, ", j: ", 32 * p.columns,
      "] = sum(k: ", p.k, ") ", p.sum, "(A[i, k]) * ", p.sum,
      "(B[k, j])\ntrace 1\nb0 = block(\"C\")\nb1 = cache_read(b0, \"B\", \"global\")\n",
      "transform_layout(b1, \"k, j -> j / ", 16 * p.columns, ", k / ", group, ", j % ",
      16 * p.columns, ", k % ", group, "\")\nl0, l1, l2 = loops(b0)\nl3, l4, l5 = split(l0, 0, ",
      p.rows, ", 16)\nl6, l7, l8 = split(l1, 0, ", p.columns, ", 16)\nl9, l10, l11 = split(l2, 0, ",
      p.unroll, ", ", p.terms,
      ")\nreorder(l3, l6, l9, l10, l4, l7, l5, l8, l11)\nunroll(l10)\nunroll(l4)\nunroll(l7)\n"
      "tensorize(l5, \"",
      p.instruction, "\")\nparallel(l3)\n");
}

std::string CodeOf(const TileProduct& product) {
  const auto assembly = AssemblyOf(Preset("intel/sapphirerapids"), TraceOf(product));
  EXPECT_THAT(assembly, IsOk()) << TraceOf(product);
  return assembly.ok() ? *assembly : "";
}

// The instructions on tiles, one letter each: l(oad), s(tore), z(ero), c(onfigure), r(elease), and
// m for a multiplication; and the innermost loop around multiplications in brackets.
std::string TilesIn(absl::string_view assembly) {
  std::string tiles;
  size_t label = std::string::npos;  // the place of the last label in `tiles`
  bool multiplies = false;           // since this label
  for (const absl::string_view whole : absl::StrSplit(assembly, '\n')) {
    const absl::string_view line = absl::StripLeadingAsciiWhitespace(whole);
    if (absl::StartsWith(line, ".LBB")) {
      label = tiles.size();
      multiplies = false;
    }
    if (absl::StartsWith(line, "tileloadd")) tiles += 'l';
    if (absl::StartsWith(line, "tilestored")) tiles += 's';
    if (absl::StartsWith(line, "tilezero")) tiles += 'z';
    if (absl::StartsWith(line, "ldtilecfg")) tiles += 'c';
    if (absl::StartsWith(line, "tilerelease")) tiles += 'r';
    if (absl::StartsWith(line, "tdp")) {
      tiles += 'm';
      multiplies = true;
    }
    if (absl::StartsWith(line, "j") && multiplies && label != std::string::npos) {
      tiles.insert(label, "[");
      tiles += ']';
      multiplies = false;
    }
  }
  return tiles;
}

std::string Named(absl::string_view assembly, absl::string_view prefix) {
  std::string name;
  for (const absl::string_view whole : absl::StrSplit(assembly, '\n')) {
    const absl::string_view line = absl::StripLeadingAsciiWhitespace(whole);
    if (absl::StartsWith(line, prefix)) name = std::string(line.substr(0, line.find('\t')));
  }
  return name;
}

constexpr TileProduct kInt8 = {"u8", "i8", "i32", "amx_u8i8_16x16x64"};
constexpr TileProduct kBf16 = {"bf16", "bf16", "f32", "amx_bf16_16x16x32", 32};

// Four tiles of sums, set to zero in registers. Each step loads two tiles of each operand once, and
// nothing is stored until the end.
TEST(AmxCodeTest, SumsStayInTileRegisters) {
  for (const TileProduct& product : {kInt8, kBf16}) {
    const std::string assembly = CodeOf(product);
    EXPECT_EQ(TilesIn(assembly), "czzzz[llmlmlmm]ssssr") << assembly;
  }
}

TEST(AmxCodeTest, EveryInstructionIsEmitted) {
  const auto name = [](const TileProduct& product) { return Named(CodeOf(product), "tdp"); };
  EXPECT_EQ(name(kInt8), "tdpbusd");
  EXPECT_EQ(name({"i8", "i8", "i32", "amx_i8_16x16x64"}), "tdpbssd");
  EXPECT_EQ(name({"u8", "u8", "i32", "amx_u8_16x16x64"}), "tdpbuud");
  EXPECT_EQ(name(kBf16), "tdpbf16ps");
}

TEST(AmxCodeTest, TilesOfAllShapesThatSpacesHaveFitIntoTheRegisters) {
  const auto code = [](int rows, int columns, int unroll) {
    TileProduct product = kInt8;
    product.rows = rows;
    product.columns = columns;
    product.unroll = unroll;
    return TilesIn(CodeOf(product));
  };
  EXPECT_EQ(code(1, 1, 2), "cz[llmllm]sr");
  EXPECT_EQ(code(6, 1, 1), "czzzzzz[llmlmlmlmlmlm]ssssssr");
  EXPECT_EQ(code(5, 1, 1), "czzzzz[llmlmlmlmlm]sssssr");
  EXPECT_EQ(code(1, 3, 1), "czzz[llmlmlm]sssr");
  EXPECT_EQ(code(2, 2, 4), "czzzz[llmlmlmmllmlmlmmllmlmlmmllmlmlmm]ssssr");
}

// Too many sums for the registers: each step loads and stores them.
TEST(AmxCodeTest, MoreSumsThanRegistersStayInMemory) {
  TileProduct product = kInt8;
  product.rows = 4;
  product.columns = 2;
  const std::string tiles = TilesIn(CodeOf(product));
  EXPECT_EQ(std::count(tiles.begin(), tiles.end(), 'm'), 8);
  EXPECT_TRUE(absl::StrContains(tiles, "ms")) << tiles;
}

// The loop is that over the tiles of the result.
TEST(AmxCodeTest, ShortSumsNeedNoLoop) {
  TileProduct product = kInt8;
  product.k = 128;
  product.unroll = 2;
  EXPECT_EQ(TilesIn(CodeOf(product)), "c[zzzzllmlmlmmllmlmlmmssss]r");
}

// The innermost loop of two by two tiles runs 16 times for each of 4 × 1 tiles of the result.
TEST(AmxCodeTest, CodeWithTilesIsModelled) {
  const target::Target target = Preset("intel/sapphirerapids");
  HONE_ASSERT_OK_AND_ASSIGN(const ir::Program program, ReplayText(TraceOf(kInt8)));
  HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, target));
  HONE_ASSERT_OK_AND_ASSIGN(const ModelledCost cost, ModelCost(lowered, target));
  EXPECT_GE(cost.blocks[0].executions, 16);
  EXPECT_GE(cost.blocks[0].cycles, 4 * 16) << "a product takes 16 cycles";
}

// Both operands are in one tensor and begin at one address, but every second row is one of the left
// operand's tile. It must not take the place of the right one's in registers.
TEST(AmxCodeTest, TilesAtOneAddressWithOtherRowsAreLoadedBoth) {
  const auto tiles = [](const char* const row) {
    const auto assembly = AssemblyOf(
        Preset("intel/sapphirerapids"),
        absl::StrCat("workload w\ninput P: i8[32, 16, 4]\noutput C[i: 16, j: 16] = sum(k: 64) "
                     "i32(P[",
                     row,
                     ", k / 4, k % 4]) * i32(P[k / 4, j, k % 4])\ntrace 1\nb0 = block(\"C\")\n"
                     "l0, l1, l2 = loops(b0)\ntensorize(l0, \"amx_i8_16x16x64\")\n"));
    EXPECT_THAT(assembly, IsOk());
    return assembly.ok() ? TilesIn(*assembly) : "";
  };
  EXPECT_EQ(tiles("2*i"), "czllmsr");
  EXPECT_EQ(tiles("i"), "czlmsr") << "one tile is both operands";
}

// The neutral element may also be stored by a nest of its own.
TEST(AmxCodeTest, ASeparateInitIsLoadedOnce) {
  std::string trace = TraceOf(kInt8);
  trace.insert(trace.find("parallel"), "b2 = decompose_reduction(b0, l9)\n");
  const auto assembly = AssemblyOf(Preset("intel/sapphirerapids"), trace);
  ASSERT_THAT(assembly, IsOk());
  EXPECT_EQ(TilesIn(*assembly), "cllll[llmlmlmm]ssssr") << *assembly;
}

}  // namespace
}  // namespace hone::codegen
