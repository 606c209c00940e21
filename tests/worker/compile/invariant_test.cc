// Code that does not depend on a loop is moved in front of it; other code stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ir::Values;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::string_view kScaled = R"(workload scaled
input X: f32[4, 4096]
input V: f32[4]
output Y[i: 4, j: 4096] = X[i, j] * rsqrt(V[i] + 1.0)
)";
constexpr absl::string_view kDivided = R"(workload divided
input X: f32[4, 4096]
input V: f32[4]
output Y[i: 4, j: 4096] = X[i, j] / V[i]
)";
constexpr absl::string_view kVectors =
    "trace 1\nb0 = block(\"Y\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, 16)\nvectorize(l3)\n";

// Returns the assembly of the shortest loop that uses vectors.
std::string InnermostLoop(const std::string& assembly) {
  const std::vector<std::string> lines = absl::StrSplit(assembly, '\n');
  std::map<std::string, size_t> labels;
  std::vector<std::string> shortest;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string line(absl::StripAsciiWhitespace(lines[i]));
    if (absl::StartsWith(line, ".LBB")) labels[line.substr(0, line.find(':'))] = i;
    const size_t target = line.find(".LBB");
    if (!absl::StartsWith(line, "j") || target == std::string::npos) continue;
    const auto label = labels.find(line.substr(target));
    if (label == labels.end()) continue;
    std::vector<std::string> loop(lines.begin() + label->second, lines.begin() + i);
    const bool vectors = absl::StrContains(absl::StrJoin(loop, "\n"), "zmm");
    if (vectors && (shortest.empty() || loop.size() < shortest.size())) shortest = loop;
  }
  EXPECT_FALSE(shortest.empty()) << assembly;
  return absl::StrJoin(shortest, "\n");
}

TEST(InvariantTest, ARowsRootIsComputedBeforeTheRow) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto assembly,
                            AssemblyOf(Preset("x86-avx512"), absl::StrCat(kScaled, kVectors)));
  EXPECT_THAT(assembly, HasSubstr("vsqrtss"));
  EXPECT_THAT(InnermostLoop(assembly), Not(HasSubstr("vsqrt")));
}

TEST(InvariantTest, ADivisorOfTheRowIsOneReciprocal) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto assembly,
                            AssemblyOf(Preset("x86-avx512"), absl::StrCat(kDivided, kVectors)));
  EXPECT_THAT(assembly, HasSubstr("vdivss"));
  EXPECT_THAT(InnermostLoop(assembly), Not(HasSubstr("vdiv")));
}

constexpr absl::string_view kQuantized = R"(workload quantized
input X: f32[4, 4096]
input Z: u8[1]
output Y[i: 4, j: 4096] = u8(min(max(round(X[i, j]) + f32(Z[0]), 0.0), 255.0))
)";

// A zero point is converted and broadcast once. The instruction that truncates gives 0 for numbers
// that do not fit, so nothing is compared.
TEST(InvariantTest, BytesAreQuantizedWithoutComparisons) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto assembly,
                            AssemblyOf(Preset("x86-avx512"), absl::StrCat(kQuantized, kVectors)));
  const std::string loop = InnermostLoop(assembly);
  for (const char* instruction : {"movzbl", "vcvtsi2ss", "vbroadcastss", "vcmp"}) {
    EXPECT_THAT(loop, Not(HasSubstr(instruction)));
  }
  EXPECT_THAT(loop, HasSubstr("vcvttps2dq"));
}

// While the sums of a tile are computed, they need all registers, so what only their reader needs
// is computed after them.
TEST(InvariantTest, AFusedReadersInvariantsFollowTheSums) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto assembly,
                            AssemblyOf(Preset("x86-avx512"), R"(workload scaled_product
input A: f32[56, 64]
input B: f32[64, 64]
input T: f32[1]
C[i: 56, j: 64] = sum(k: 64) A[i, k] * B[k, j]
output D[i: 56, j: 64] = C[i, j] / T[0]
trace 1
b0 = block("C")
b1 = block("D")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, 14, 2, 16, 1)
reverse_compute_at(b1, l4)
l6, l7, l8, l9 = loops(b1)
l10, l11 = split(l9, 0, 16)
vectorize(l11)
)"));
  EXPECT_THAT(assembly, HasSubstr("vdivss"));
  EXPECT_GT(assembly.find("vdivss"), assembly.find("vfmadd"));
}

TEST(InvariantTest, QuotientsAreThoseOfTheDivider) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  const std::vector<float> special = {0.0F,       -0.0F,   1.0F,   -3.0F,      kInfinity,
                                      -kInfinity, kNan,    kLeast, 1e-40F,     3e-38F,
                                      -1e38F,     3.4e38F, 7e37F,  16777215.0F};
  Rng rng(3, 0);
  for (size_t round = 0; round < 40; ++round) {
    std::vector<Values> inputs(2);
    for (int i = 0; i < 4; ++i) {
      const float random = static_cast<float>(
          std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(250)) - 125));
      inputs[1].push_back(4 * round + i < special.size() ? special[4 * round + i] : random);
      const bool whole = round % 2 == 0;
      for (int j = 0; j < 4096; ++j) {
        float x = static_cast<float>(
            std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(250)) - 125));
        // Multiples of the divisor have exact quotients.
        if (whole)
          x = static_cast<float>(static_cast<double>(rng.Below(2001)) - 1000) *
              static_cast<float>(inputs[1].back());
        if (j < static_cast<int>(special.size())) x = special[j];
        inputs[0].push_back(x);
      }
    }
    for (const target::Target& target : RunnableTargets()) {
      HONE_ASSERT_OK_AND_ASSIGN(const auto actual,
                                RunTrace(target, absl::StrCat(kDivided, kVectors), inputs));
      for (int e = 0; e < 4 * 4096; ++e) {
        const auto x = static_cast<float>(inputs[0][e]),
                   v = static_cast<float>(inputs[1][e / 4096]);
        const float want = x / v, got = static_cast<float>(actual[0][e]);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(got)) << x << " / " << v << " gives " << got;
        } else if (std::isfinite(want) && (std::fabs(want) < 1.2e-38F || std::fabs(x) < 1e-30F)) {
          // The remainder of a division underflows near denormal numbers, so the result may be off
          // by one unit.
          ASSERT_NEAR(got, want, kLeast + std::fabs(want) * 1.2e-7F) << x << " / " << v;
        } else {
          ASSERT_EQ(got, want) << x << " / " << v;
        }
      }
    }
  }
}

// With a row of one vector, the divisor is read in the same statement as the quotient.
TEST(InvariantTest, ADivisorInTheSameStatement) {
  constexpr absl::string_view kRow = R"(workload row
input X: f32[4, 16]
input V: f32[4]
output Y[i: 4, j: 16] = X[i, j] / V[i]
trace 1
b0 = block("Y")
l0, l1 = loops(b0)
vectorize(l1)
)";
  std::vector<Values> inputs(2);
  for (int i = 0; i < 4; ++i) inputs[1].push_back(3 + 4 * i);
  for (int e = 0; e < 64; ++e) inputs[0].push_back((e - 20) * inputs[1][e / 16]);
  for (const target::Target& target : RunnableTargets()) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, RunTrace(target, kRow, inputs));
    for (int e = 0; e < 64; ++e) EXPECT_EQ(actual[0][e], e - 20);
  }
}

// The loop over j changes S[i], so each iteration must read it again.
TEST(InvariantTest, ValuesWrittenInTheLoopAreReloaded) {
  constexpr absl::string_view kPrefix = R"(workload prefix
input X: f32[6, 32]
S[i: 6] = sum(k: 32) X[i, k]
output Y[i: 6, j: 32] = X[i, j] * rsqrt(S[i] * S[i] + 1.0)
trace 1
b0 = block("S")
b1 = block("Y")
l0, l1 = loops(b1)
l2, l3 = split(l1, 0, 16)
compute_at(b0, l2)
vectorize(l3)
)";
  const std::string text(kPrefix.substr(0, kPrefix.find("trace")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
  std::vector<Values> inputs(1);
  for (int i = 0; i < 6 * 32; ++i) inputs[0].push_back(i % 7 - 2);
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
  for (const target::Target& target : RunnableTargets()) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, RunTrace(target, kPrefix, inputs));
    for (size_t e = 0; e < expected[0].size(); ++e) {
      ASSERT_NEAR(actual[0][e], expected[0][e], 1e-5);
    }
  }
}

}  // namespace
}  // namespace hone::codegen
