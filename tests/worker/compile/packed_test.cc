// Inputs of i4 and u4 in compiled code. The bytes are written here, by the definition of the types:
// two elements per byte, the first in the low bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/target/kernel_abi.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

// 21 elements: 0 to 15 and the first five again. The high bits of the last byte do not belong to an
// element.
constexpr uint8_t kBytes[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0x10, 0x32, 0xf4};

// A workload whose output Y has two dimensions, the last of which is vectorized.
std::string InVectors(const std::string& workload, int lanes) {
  if (lanes == 1) return absl::StrCat(workload, "trace 1\n");
  return absl::StrCat(workload, "trace 1\nb = block(\"Y\")\ni, j = loops(b)\nj0, j1 = split(j, 0, ",
                      lanes, ")\nvectorize(j1)\n");
}

TEST(PackedTest, BytesHoldTwoElements) {
  for (const bool is_signed : {true, false}) {
    for (const int lanes : {1, 2, 4, 7}) {
      for (const target::Target& target : RunnableTargets()) {
        HONE_ASSERT_OK_AND_ASSIGN(
            const auto program,
            ReplayText(InVectors(absl::StrCat("workload unpack\ninput X: ", is_signed ? "i4" : "u4",
                                              "[3, 7]\noutput Y[i: 3, j: 7] = i32(X[i, j])\n"),
                                 lanes)));
        HONE_ASSERT_OK_AND_ASSIGN(const auto kernel, CompiledProgram::Load(program, target));
        alignas(64) uint8_t x[64] = {};
        std::copy(std::begin(kBytes), std::end(kBytes), x);
        alignas(64) int32_t y[64] = {};
        void* const buffers[] = {x, y};
        const auto run = reinterpret_cast<target::RunFunction>(kernel->Symbol(target::kRunSymbol));
        ASSERT_EQ(run(buffers, nullptr, nullptr, nullptr), target::kKernelOk);
        for (int e = 0; e < 21; ++e) {
          const int value = e % 16;
          EXPECT_EQ(y[e], is_signed && value > 7 ? value - 16 : value)
              << e << ", " << lanes << " lanes on " << target.cpu;
        }
      }
    }
  }
}

ir::Values Elements(int64_t count, int least) {
  ir::Values values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i * 7 % 16 + least));
  return values;
}

// Weights with a scale per row of 8, in several schedules.
TEST(PackedTest, WeightsOfAMatmul) {
  const std::string workload =
      "workload dequantized\ninput A: f32[5, 24]\ninput W: i4[24, 13] constant\n"
      "input S: f32[3, 13]\n"
      "output C[i: 5, j: 13] = sum(k: 24) A[i, k] * (f32(W[k, j]) * S[k / 8, j])\n";
  const std::vector<ir::Values> inputs = {Elements(5 * 24, -5), Elements(24 * 13, -8),
                                          Elements(3 * 13, 1)};
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto expected,
      RunTrace(Preset("x86-avx2"), absl::StrCat(workload, "trace 1\n"), inputs));
  ir::Values by_hand(5 * 13);
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 13; ++j) {
      for (int k = 0; k < 24; ++k) {
        by_hand[i * 13 + j] +=
            inputs[0][i * 24 + k] * inputs[1][k * 13 + j] * inputs[2][k / 8 * 13 + j];
      }
    }
  }
  EXPECT_EQ(expected[0], by_hand);
  for (const char* const trace :
       {"b = block(\"C\")\ni, j, k = loops(b)\nreorder(i, k, j)\n",
        "b = block(\"C\")\ni, j, k = loops(b)\nj0, j1 = split(j, 0, 8)\nreorder(j0, i, k, j1)\n"
        "vectorize(j1)\n",
        "b = block(\"C\")\nc = cache_read(b, \"W\", \"global\")\n",
        "b = block(\"C\")\nc = cache_read(b, \"W\", \"local\")\ni, j, k = loops(b)\n"
        "reorder(k, i, j)\ncompute_at(c, k)\n"}) {
    for (const target::Target& target : RunnableTargets()) {
      const auto actual = RunTrace(target, absl::StrCat(workload, "trace 1\n", trace), inputs);
      ASSERT_THAT(actual, IsOk()) << trace;
      EXPECT_EQ((*actual)[0], by_hand) << trace << target.cpu;
    }
  }
}

// Weights in panels stay packed: the kernel needs half a byte for each. All numbers are small, so
// that sums are exact in any order.
TEST(PackedTest, PanelsOfWeightsStayPacked) {
  constexpr int64_t kInner = 48, kColumns = 96, kBlock = 16;
  struct Case {
    const char* dtype;
    bool zeros;
  };
  for (const Case& form :
       {Case{"i4", false}, Case{"u4", false}, Case{"u4", true}, Case{"i4", true}}) {
    const int least = form.dtype[0] == 'i' ? -8 : 0;
    const std::string element =
        form.zeros ? "f32(i32(W[k, j]) - i32(Z[k / 16, j]))" : "f32(W[k, j])";
    const std::string workload = absl::StrCat(
        "workload weights\ninput A: f32[3, 48]\ninput W: ", form.dtype,
        "[48, 96] constant\ninput S: f32[3, 96] constant\n",
        form.zeros ? absl::StrCat("input Z: ", form.dtype, "[3, 96] constant\n") : "",
        "output C[i: 3, j: 96] = sum(k: 48) A[i, k] * (", element, " * S[k / 16, j])\n");
    std::vector<ir::Values> inputs = {Elements(3 * kInner, -5), Elements(kInner * kColumns, least),
                                      Elements(kInner / kBlock * kColumns, 1)};
    if (form.zeros) inputs.push_back(Elements(kInner / kBlock * kColumns, least));
    ir::Values expected(3 * kColumns);
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        for (int64_t k = 0; k < kInner; ++k) {
          const int64_t scale = k / kBlock * kColumns + j;
          const double zero = form.zeros ? inputs[3][scale] : 0;
          expected[i * kColumns + j] +=
              inputs[0][i * kInner + k] * (inputs[1][k * kColumns + j] - zero) * inputs[2][scale];
        }
      }
    }
    struct Tile {
      int vectors, lanes, steps;
    };
    for (const auto& [vectors, lanes, steps] :
         {Tile{1, 4, 1}, Tile{2, 4, 4}, Tile{3, 8, 8}, Tile{1, 8, 1}, Tile{2, 16, 8}}) {
      const int panel = vectors * lanes;
      const std::string trace = absl::StrCat(
          workload,
          "trace 1\nb = block(\"C\")\ni, j, k = loops(b)\nx, y, z = register_tile(b, i, j, k, 1, ",
          vectors, ", ", lanes, ", ", steps,
          ")\nc = cache_read(b, \"W\", \"global\")\ntransform_layout(c, \"a0, a1 -> a1 / ", panel,
          ", a0, a1 % ", panel, "\")\n");
      HONE_ASSERT_OK_AND_ASSIGN(const ir::Program program, ReplayText(trace));
      for (const target::Target& target : RunnableTargets()) {
        HONE_ASSERT_OK_AND_ASSIGN(const auto kernel, CompiledProgram::Load(program, target));
        HONE_ASSERT_OK_AND_ASSIGN(const auto actual, kernel->Run(inputs));
        EXPECT_EQ(actual[0], expected) << trace << target.cpu;
        HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, target));
        // A panel of 4 columns has no whole words.
        const int64_t half = panel % 8 == 0 ? 2 : 1;
        EXPECT_EQ(lowered.packed_bytes, kInner * kColumns / half) << trace << target.cpu;
      }
    }
  }
}

// A shared panel, a copy that a vectorized loop writes, elements that become whole numbers or are
// read one at a time.
TEST(PackedTest, OtherUsesOfPackedCopies) {
  for (const char* const dtype : {"i4", "u4"}) {
    const int least = dtype[0] == 'i' ? -8 : 0;
    for (const char* const use : {"i32(W[j, i])", "i32(W[j, i]) * 3 - i32(W[j, i])",
                                  "i32(f32(W[j, i]) * 0.5 + f32(W[j, i]))"}) {
      const std::string workload =
          absl::StrCat("workload uses\ninput W: ", dtype,
                       "[16, 24] constant\noutput Y[i: 24, j: 16] = ", use, "\n");
      for (const char* const trace :
           {"b = block(\"Y\")\nc = cache_read(b, \"W\", \"global\")\n",
            "b = block(\"Y\")\nc = cache_read(b, \"W\", \"global\")\ni, j = loops(b)\nreorder(j, "
            "i)\n"
            "i0, i1 = split(i, 0, 8)\nvectorize(i1)\n",
            "b = block(\"Y\")\nc = cache_read(b, \"W\", \"global\")\nx, y = loops(c)\n"
            "y0, y1 = split(y, 0, 8)\nvectorize(y1)\ni, j = loops(b)\nj0, j1 = split(j, 0, "
            "8)\nvectorize(j1)\n",
            "b = block(\"Y\")\nc = cache_read(b, \"W\", \"global\")\ntransform_layout(c, \"a, b -> "
            "b, a\")\n"
            "i, j = loops(b)\nj0, j1 = split(j, 0, 16)\nvectorize(j1)\n"}) {
        const std::string text = absl::StrCat(workload, "trace 1\n", trace);
        const std::vector<ir::Values> inputs = {Elements(16 * 24, least)};
        HONE_ASSERT_OK_AND_ASSIGN(const ir::Program program, ReplayText(text));
        HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(program, inputs));
        for (const target::Target& target : RunnableTargets()) {
          HONE_ASSERT_OK_AND_ASSIGN(const auto actual, RunTrace(target, text, inputs));
          EXPECT_EQ(actual[0], expected[0]) << text << target.cpu;
        }
      }
    }
  }
}

TEST(PackedTest, RowsAtComputedIndices) {
  const std::string workload =
      "workload embedding\ninput T: u4[9, 6]\ninput I: i32[4] < 9\n"
      "output Y[i: 4, j: 6] = f32(T[at(I[i]), j]) * 0.5\n";
  const std::vector<ir::Values> inputs = {Elements(54, 0), {8, 0, 3, 3}};
  for (const target::Target& target : RunnableTargets()) {
    for (const int lanes : {1, 4}) {
      HONE_ASSERT_OK_AND_ASSIGN(const auto actual,
                                RunTrace(target, InVectors(workload, lanes), inputs));
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 6; ++j) {
          EXPECT_EQ(actual[0][i * 6 + j], inputs[0][inputs[1][i] * 6 + j] * 0.5) << i << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hone::codegen
