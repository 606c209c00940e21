// Reads the code of typical kernels for ARM and checks that it has the instructions that make them
// fast and none that make them slow. It runs nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct LoopCode {
  std::string text;
  int multiply_adds = 0, by_lane = 0, loads = 0, stack = 0;
  int groups = 0;  // of loads, with nothing between them
};

LoopCode Count(absl::Span<const std::string> lines, const std::string& multiply_add) {
  LoopCode loop;
  bool loading = false;
  for (const std::string& line : lines) {
    absl::StrAppend(&loop.text, line, "\n");
    const bool multiplies = absl::StrContains(line, absl::StrCat("\t", multiply_add, "\t"));
    loop.multiply_adds += multiplies;
    loop.by_lane += multiplies && absl::StrContains(line, ".s[");
    const bool loads = absl::StartsWith(line, "\tld");
    loop.loads += loads;
    loop.groups += loads && !loading;
    loading = loads;
    loop.stack += absl::StrContains(line, "[sp");
  }
  return loop;
}

// The innermost loop with the most multiply-adds: from its label to the backward branch.
LoopCode HottestLoop(const std::string& assembly, const std::string& multiply_add) {
  const std::vector<std::string> lines = absl::StrSplit(assembly, '\n');
  std::map<std::string, size_t> labels;
  LoopCode hottest;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (absl::StartsWith(lines[i], ".LBB")) labels[lines[i].substr(0, lines[i].find(':'))] = i;
    if (!absl::StartsWith(lines[i], "\tb") && !absl::StartsWith(lines[i], "\tcb")) continue;
    const size_t name = lines[i].find(".LBB");
    if (name == std::string::npos) continue;
    const auto label = labels.find(lines[i].substr(name));
    if (label == labels.end()) continue;
    const LoopCode loop =
        Count(absl::MakeSpan(lines).subspan(label->second, i - label->second), multiply_add);
    if (loop.multiply_adds > hottest.multiply_adds) hottest = loop;
  }
  return hottest;
}

LoopCode Compiled(const std::string& preset, const std::string& trace,
                  const std::string& multiply_add = "fmla") {
  const auto assembly = AssemblyOf(Preset(preset), trace);
  EXPECT_THAT(assembly, IsOk());
  return assembly.ok() ? HottestLoop(*assembly, multiply_add) : LoopCode();
}

constexpr int kSteps = 4, kTile = 8 * 3;  // of the traces of tests/bench/arm

TEST(ArmCodeTest, AProductLoadsBothPanelsAsVectors) {
  const std::string trace = ReadFile("tests/bench/arm/matmul.trace").value();
  for (const char* const preset :
       {"arm/cortex-a53", "arm/cortex-a72", "arm/cortex-a76", "arm/neoverse-n1", "arm/neoverse-v1",
        "arm/neoverse-v2", "arm/apple-m1"}) {
    const LoopCode loop = Compiled(preset, trace);
    EXPECT_EQ(loop.by_lane, kSteps * kTile) << preset << "\n" << loop.text;
    EXPECT_LE(loop.loads, kSteps * (2 + 3)) << preset << "\n" << loop.text;
    EXPECT_EQ(loop.stack, 0) << preset << "\n" << loop.text;
  }
}

TEST(ArmCodeTest, AConvolutionKeepsItsTileInRegisters) {
  const std::string trace = ReadFile("tests/bench/arm/conv2d.trace").value();
  for (const char* const preset : {"arm/cortex-a53", "arm/cortex-a55", "arm/cortex-a72",
                                   "arm/cortex-a76", "arm/neoverse-n1", "arm/neoverse-v1"}) {
    const LoopCode loop = Compiled(preset, trace);
    EXPECT_EQ(loop.multiply_adds, kSteps * kTile) << preset << "\n" << loop.text;
    EXPECT_EQ(loop.stack, 0) << preset << "\n" << loop.text;
  }
}

// A step of the tile, 8×12 results, has 4 loads of pairs of rows and 6 of pairs of columns.
TEST(ArmCodeTest, BlocksOfSumsStayInRegisters) {
  const std::string trace = ReadFile("tests/bench/arm/smmla.trace").value();
  for (const char* const preset : {"arm/neoverse-v1", "arm/neoverse-v2"}) {
    const LoopCode loop = Compiled(preset, trace, "smmla");
    EXPECT_EQ(loop.multiply_adds, kSteps * kTile) << preset << "\n" << loop.text;
    EXPECT_LE(loop.loads, kSteps * (4 + 6)) << preset << "\n" << loop.text;
    EXPECT_EQ(loop.stack, 0) << preset << "\n" << loop.text;
  }
}

// 16 accumulators leave room for the operands of all steps, so one load per row serves them.
TEST(ArmCodeTest, AConvolutionLoadsSeveralChannelsOfAPixelAtOnce) {
  const std::string trace = absl::StrReplaceAll(
      ReadFile("tests/bench/arm/conv2d.trace").value(),
      {{"60]", "64]"}, {"co / 12", "co / 8"}, {"co % 12", "co % 8"}, {"ci, 8, 3,", "ci, 8, 2,"}});
  for (const char* const preset :
       {"arm/cortex-a53", "arm/cortex-a55", "arm/cortex-a72", "arm/neoverse-v1"}) {
    const LoopCode loop = Compiled(preset, trace);
    EXPECT_EQ(loop.by_lane, kSteps * 8 * 2) << preset << "\n" << loop.text;
    EXPECT_LE(loop.loads, 8 + kSteps * 2) << preset << "\n" << loop.text;
    EXPECT_EQ(loop.stack, 0) << preset << "\n" << loop.text;
  }
}

// On Cortex-A53, each change from multiply-adds to loads costs a wait. Cortex-A55 can issue a
// multiply-add beside a load, but not beside a pair of loads.
TEST(ArmCodeTest, InOrderCoresLoadWhereItDelaysLeast) {
  for (const char* const name : {"matmul", "conv2d_packed"}) {
    const std::string trace = ReadFile(absl::StrCat("tests/bench/arm/", name, ".trace")).value();
    const LoopCode a53 = Compiled("arm/cortex-a53", trace), a55 = Compiled("arm/cortex-a55", trace);
    EXPECT_LE(a53.groups, kSteps) << a53.text;
    EXPECT_GT(a55.groups, 2 * kSteps) << a55.text;
    for (const LoopCode& loop : {a53, a55}) {
      EXPECT_EQ(loop.multiply_adds, kSteps * kTile) << loop.text;
      EXPECT_EQ(loop.stack, 0) << loop.text;
      EXPECT_THAT(loop.text, Not(HasSubstr("\tldp\t")));
      // Pointers advance; addresses are not computed.
      EXPECT_THAT(loop.text, Not(HasSubstr("\tmadd\t")));
    }
  }
}

// 20 elements are two vectors of 256 bits and a part of one.
TEST(ArmCodeTest, SveHasWideVectorsAndPredicatedTails) {
  const std::string workload = "workload w\ninput X: f32[20]\noutput Y[i: 20] = X[i] * 2.0\n";
  HONE_ASSERT_OK_AND_ASSIGN(const auto code,
                            AssemblyOf(Preset("arm/neoverse-v1"), WithVectors(workload, {"Y"}, 8)));
  EXPECT_THAT(code, HasSubstr("z0.s"));
  EXPECT_THAT(code, HasSubstr("/z, [x"));
  EXPECT_THAT(code, HasSubstr("prctl"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto neon,
                            AssemblyOf(Preset("arm/cortex-a76"), WithVectors(workload, {"Y"}, 4)));
  EXPECT_THAT(neon, Not(HasSubstr("z0.s")));
  EXPECT_THAT(neon, Not(HasSubstr("prctl")));
}

// Indices with quotients, and what ARMv7 has no instructions for.
TEST(ArmCodeTest, Armv7CallsNoLibrary) {
  for (const char* const text :
       {"workload w\ninput X: f32[6, 35]\noutput Y[i: 210] = X[i / 35, i % 35]\n",
        "workload w\ninput A: i64[16]\ninput B: i64[16]\noutput Y[i: 16] = A[i] / B[i]\n",
        "workload w\ninput A: i32[16]\ninput B: i32[16]\noutput Y[i: 16] = A[i] / B[i]\n",
        "workload w\ninput A: u8[16]\ninput B: u8[16]\noutput Y[i: 16] = A[i] / B[i]\n",
        "workload w\ninput A: f32[16]\noutput Y[i: 16] = f32(i64(floor(A[i]))) + round(A[i]) + "
        "trunc(A[i]) + ceil(A[i])\n",
        "workload w\ninput A: f64[16]\noutput Y[i: 16] = f64(i64(floor(A[i]))) + round(A[i])\n"}) {
    // Cortex-A7 divides integers of 32 bits; the generic CPU does not.
    for (const char* const cpu : {"cortex-a7", "generic"}) {
      target::Target target = Preset("arm/cortex-a7");
      target.cpu = cpu;
      for (const int lanes : {1, 4}) {
        const auto code = AssemblyOf(target, WithVectors(text, {"Y"}, lanes));
        ASSERT_THAT(code, IsOk()) << text;
        const size_t begin = code->find("hone_main:");
        const std::string body = code->substr(begin, code->find(".Lfunc_end", begin) - begin);
        EXPECT_THAT(body, Not(HasSubstr("\tbl\t"))) << text << cpu;
      }
    }
  }
}

}  // namespace
}  // namespace hone::codegen
