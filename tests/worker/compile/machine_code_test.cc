// Reads the assembly of typical kernels and checks that it has the instructions that make them fast
// and none that make them slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/status.h"
#include "worker/compile/llvm/compile.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

struct LoopCode {
  int fmas = 0, narrow_fmas = 0, loads = 0, spills = 0, prefetches = 0;
};

// The innermost loop with the most multiply-adds: the lines from its label to the backward jump.
LoopCode HottestLoop(const std::string& assembly) {
  const std::vector<std::string> lines = absl::StrSplit(assembly, '\n');
  std::map<std::string, size_t> labels;
  LoopCode hottest;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string line(absl::StripAsciiWhitespace(lines[i]));
    if (absl::StartsWith(line, ".LBB")) labels[line.substr(0, line.find(':'))] = i;
    if (!absl::StartsWith(line, "j")) continue;
    const auto target = labels.find(std::string(absl::StripAsciiWhitespace(
        line.substr(line.find('.') == std::string::npos ? 0 : line.find('.')))));
    if (target == labels.end()) continue;
    LoopCode code;
    bool innermost = true;
    for (size_t l = target->second + 1; l < i; ++l) {
      const absl::string_view body = absl::StripAsciiWhitespace(lines[l]);
      if (body.empty() || body[0] == '#') continue;
      if (absl::StartsWith(body, "j") || absl::StartsWith(body, ".LBB")) innermost = false;
      const bool memory = absl::StrContains(body, "(%") && !absl::StartsWith(body, "lea");
      code.prefetches += absl::StartsWith(body, "prefetch");
      code.fmas += absl::StartsWith(body, "vfmadd");
      code.narrow_fmas += absl::StartsWith(body, "vfmadd") && absl::StrContains(body, "ymm");
      code.loads += memory && absl::StartsWith(body, "v");
      code.spills += absl::StrContains(body, "(%rsp)") || absl::StrContains(body, "(%rbp)");
    }
    if (innermost && code.fmas > hottest.fmas) hottest = code;
  }
  return hottest;
}

// Compiles for the same CPU on every machine.
std::string AssemblyOf(absl::string_view preset, absl::string_view trace) {
  const auto file = schedule::ParseTraceFile(trace);
  EXPECT_THAT(file, IsOk());
  const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                        file->parsed.trace, file->parsed.decisions);
  EXPECT_THAT(program, IsOk());
  const auto target = target::TargetByName(preset);
  EXPECT_THAT(target, IsOk());
  const auto lowered = lower::Lower(*program, *target);
  EXPECT_THAT(lowered, IsOk());
  const auto object = Compile(*lowered, *target, {.keep_assembly = true});
  EXPECT_THAT(object, IsOk());
  return object->assembly;
}

LoopCode Compiled(absl::string_view preset, absl::string_view trace) {
  return HottestLoop(AssemblyOf(preset, trace));
}

// How often an instruction occurs.
int Count(const std::string& assembly, const char* instruction) {
  int found = 0;
  for (size_t at = assembly.find(instruction); at != std::string::npos;
       at = assembly.find(instruction, at + 1)) {
    ++found;
  }
  return found;
}

std::string Gemm(int rows, int vectors, int lanes, int k_unroll) {
  return absl::StrCat(R"(workload matmul
input A: f32[1008, 512]
input B: f32[512, 1024]
output C[i: 1008, j: 1024] = sum(k: 512) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, )",
                      rows, ", ", vectors, ", ", lanes, ", ", k_unroll,
                      ")\nl6 = fuse(l3, l4)\nparallel(l6)\n");
}

TEST(MachineCodeTest, GemmOnAvx512KeepsItsTileInRegisters) {
  const LoopCode loop = Compiled("x86-avx512", Gemm(14, 2, 16, 2));
  EXPECT_EQ(loop.fmas, 14 * 2 * 2);
  EXPECT_EQ(loop.spills, 0);
  // For each of the two steps: a broadcast per row, and a load of B per column vector. A broadcast
  // may be folded into both of its multiply-adds instead.
  EXPECT_LE(loop.loads, 2 * (14 * 2 + 2));
}

// Packed panels, sixteen unrolled steps, and prefetches between them. No load may be hoisted so far
// that accumulators spill.
TEST(MachineCodeTest, APrefetchingGemmKeepsItsTileInRegisters) {
  const LoopCode loop = Compiled("x86-avx512", R"(workload matmul
input A: f32[1008, 512]
input B: f32[512, 1024]
output C[i: 1008, j: 1024] = sum(k: 512) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, 14, 2, 16, 16)
reorder(l4, l3, l5)
b1 = cache_read(b0, "A", "global")
transform_layout(b1, "a0, a1 -> a0 / 14, a1 / 16, a0 % 14, a1 % 16")
b2 = cache_read(b0, "B", "global")
transform_layout(b2, "a0, a1 -> a1 / 32, a0, a1 % 32")
annotate(l5, "prefetch", 2)
)");
  EXPECT_EQ(loop.fmas, 16 * 14 * 2);
  EXPECT_EQ(loop.spills, 0);
  EXPECT_EQ(loop.loads, 16 * (14 + 2));
  EXPECT_EQ(loop.prefetches, 14 + 16 * 2);  // each cache line of A and B once
}

// Eight elements of 4 bits are one load, one mask, one conversion and one multiply-add. The scales
// of blocks and what is added to stored elements are not part of the steps.
TEST(MachineCodeTest, PackedWeightsAreUnpackedAVectorAtATime) {
  const auto file = schedule::ParseTraceFile(R"(workload weights
input A: f32[1, 512]
input W: i4[512, 1024] constant
input S: f32[16, 1024] constant
output C[i: 1, j: 1024] = sum(k: 512) A[i, k] * (f32(W[k, j]) * S[k / 32, j])
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, 1, 4, 8, 8)
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "a0, a1 -> a1 / 32, a0, a1 % 32")
)");
  ASSERT_THAT(file, IsOk());
  const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                        file->parsed.trace, file->parsed.decisions);
  ASSERT_THAT(program, IsOk());
  const auto target = target::TargetByName("x86-avx2");
  ASSERT_THAT(target, IsOk());
  const auto lowered = lower::Lower(*program, *target);
  ASSERT_THAT(lowered, IsOk());
  EXPECT_EQ(lowered->packed_bytes, 512 * 1024 / 2);
  const auto object = Compile(*lowered, *target, {.keep_assembly = true});
  ASSERT_THAT(object, IsOk());
  const std::string loop = object->assembly.substr(object->assembly.find("hone_main:"));
  const auto count = [&](const char* instruction) { return Count(loop, instruction); };
  EXPECT_EQ(count("vcvtdq2ps"), 8 * 4);
  EXPECT_EQ(count("vfmadd"), 8 * 4 + 4);  // and the scale of each vector
  EXPECT_EQ(count("vfnmadd"), 4);         // the 8 that is added to stored elements
  EXPECT_EQ(count("vsubps"), 0);
  EXPECT_LE(count("vandps") + count("vpand"), 8 * 4);
  EXPECT_LE(count("vmulps"), 8);
  EXPECT_EQ(count("vpsll") + count("vpsra") + count("vpsrl") + count("vpgather"), 0);
}

// Two words hold the elements of sixteen lanes, so that a lane's place in memory is no multiple of
// its number.
TEST(MachineCodeTest, PackedWeightsArePrefetched) {
  const LoopCode loop = Compiled("x86-avx512", R"(workload weights
input A: f32[1, 512]
input W: i4[512, 1024] constant
output C[i: 1, j: 1024] = sum(k: 512) A[i, k] * f32(W[k, j])
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, 1, 2, 16, 16)
annotate(l5, "prefetch", 16)
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "a0, a1 -> a1 / 32, a0, a1 % 32")
)");
  EXPECT_GE(loop.fmas, 16 * 2);
  EXPECT_EQ(loop.prefetches, 16 * 32 / 2 / 64 + 1);  // each line of W once, and one of A
}

TEST(MachineCodeTest, GemmOnAvx2KeepsItsTileInRegisters) {
  const LoopCode loop = Compiled("x86-avx2", Gemm(6, 2, 8, 1));
  EXPECT_EQ(loop.fmas, 6 * 2);
  EXPECT_EQ(loop.spills, 0);
  EXPECT_LE(loop.loads, 6 + 2);
}

// The last step of the reduction and the last columns have code of their own: the loop over the
// others has no branch, and padded panels are read without masks.
TEST(MachineCodeTest, OddExtentsHaveALoopWithoutBranchesAndNeedNoMasks) {
  const std::string assembly = AssemblyOf("x86-avx2", R"(workload matmul
input A: f32[1224, 51]
input B: f32[51, 67] constant
output C[i: 1224, j: 67] = sum(k: 51) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, 4, 3, 8, 2)
b1 = cache_read(b0, "B", "global")
transform_layout(b1, "a0, a1 -> a1 / 24, a0, a1 % 24")
)");
  EXPECT_EQ(HottestLoop(assembly).fmas, 4 * 3 * 2);
  EXPECT_EQ(Count(assembly, "vmaskmovps"), 0);
}

TEST(MachineCodeTest, ConvolutionKeepsItsTileInRegistersAndSkipsPaddedTaps) {
  const LoopCode loop = Compiled("x86-avx512", R"(workload conv2d
input X: f32[1, 14, 14, 256]
input W: f32[3, 3, 256, 256] constant
output Y[n: 1, h: 14, w: 14, co: 256] = sum(r: 3, s: 3, ci: 256 where 0 <= h + r - 1 < 14, 0 <= w + s - 1 < 14) X[n, h + r - 1, w + s - 1, ci] * W[r, s, ci, co]
trace 1
b0 = block("Y")
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "r, s, ci, co -> co / 32, r, s, ci, co % 32")
ln, lh, lw, lco, lr, ls, lci = loops(b0)
l3, l4, l5 = register_tile(b0, lw, lco, lci, 14, 2, 16, 1)
reorder(l4, lh, l3, lr, ls, l5)
)");
  EXPECT_EQ(loop.fmas, 14 * 2);  // of the interior tap; the outer taps have 13 rows
  EXPECT_EQ(loop.spills, 0);
}

// The operands of neighbouring steps are adjacent in memory. Loading them together would spill
// accumulators.
TEST(MachineCodeTest, UnrolledStepsThroughPackedWeightsKeepTheTileInRegisters) {
  const LoopCode loop = Compiled("x86-avx512", R"(workload conv2d
input X: f32[1, 14, 14, 256]
input W: f32[1, 1, 256, 1024] constant
output Y[n: 1, h: 14, w: 14, co: 1024] = sum(r: 1, s: 1, ci: 256) X[n, h + r, w + s, ci] * W[r, s, ci, co]
trace 1
b0 = block("Y")
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "r, s, ci, co -> co / 32, r, s, ci, co % 32")
n, h, w, o, r, s, c = loops(b0)
p = fuse(h, w)
p0, o0, c0 = register_tile(b0, p, o, c, 14, 2, 16, 4)
reorder(n, o0, p0, c0)
)");
  EXPECT_EQ(loop.fmas, 14 * 2 * 4);
  EXPECT_EQ(loop.spills, 0);
  EXPECT_LE(loop.loads, 4 * (14 + 2));
}

// The second vector of each row has 8 of 16 lanes, so half a register holds it. Its other lanes
// need not be kept, and do not take registers.
TEST(MachineCodeTest, HalfVectorsAtTheEdgeKeepTheTileInRegisters) {
  const LoopCode loop = Compiled("x86-avx512", R"(workload matmul
input A: f32[1008, 512]
input B: f32[512, 24]
output C[i: 1008, j: 24] = sum(k: 512) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, 14, 2, 16, 1)
)");
  EXPECT_EQ(loop.fmas, 14 * 2);
  EXPECT_EQ(loop.narrow_fmas, 14);
  EXPECT_EQ(loop.spills, 0);
}

// Neighbouring taps of a depthwise convolution read the same pixels: 8 outputs of a row need 10
// pixels, not 24.
TEST(MachineCodeTest, StepsOfASlidingWindowShareTheirLoads) {
  const LoopCode loop = Compiled("x86-avx512", R"(workload depthwise
input X: f32[1, 18, 18, 32]
input W: f32[3, 3, 32] constant
output Y[n: 1, h: 16, w: 16, c: 32] = sum(r: 3, s: 3) X[n, h + r, w + s, c] * W[r, s, c]
trace 1
b0 = block("Y")
n, h, w, c, r, s = loops(b0)
w0, c0, s0 = register_tile(b0, w, c, s, 8, 2, 16, 3)
reorder(n, h, w0, c0, r, s0)
)");
  EXPECT_EQ(loop.fmas, 8 * 2 * 3);
  EXPECT_LE(loop.loads, 2 * (10 + 3) + 4);
}

}  // namespace
}  // namespace hone::codegen
