// Design spaces that use instructions for products of short numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Spaces = std::vector<std::unique_ptr<DesignSpace>>;

Spaces SpacesOf(absl::string_view workload, const target::Target& target) {
  auto spaces = GenerateDesignSpaces(MakeWorkload(workload), target);
  EXPECT_THAT(spaces, IsOk()) << workload;
  return spaces.ok() ? *std::move(spaces) : Spaces();
}

Spaces SpacesOf(absl::string_view workload, absl::string_view target) {
  return SpacesOf(workload, *target::TargetByName(target));
}

// Returns the instruction that a space's trace uses; "" if there is none.
std::string InstructionOf(const DesignSpace& space) {
  const std::string text = space.trace().ToText();
  const size_t begin = text.find("tensorize(");
  if (begin == std::string::npos) return "";
  const size_t name = text.find('"', begin) + 1;
  return text.substr(name, text.find('"', name) - name);
}

template <typename TargetOrName>
std::set<std::string> InstructionsFor(absl::string_view workload, const TargetOrName& target) {
  std::set<std::string> names;
  for (const auto& space : SpacesOf(workload, target)) names.insert(InstructionOf(*space));
  names.erase("");
  return names;
}

std::string Product(absl::string_view left, absl::string_view right, absl::string_view sum, int m,
                    int n, int k) {
  return absl::StrCat("workload w\ninput A: ", left, "[", m, ", ", k, "]\ninput B: ", right, "[", k,
                      ", ", n, "] constant\noutput C[i: ", m, ", j: ", n, "] = sum(k: ", k, ") ",
                      sum, "(A[i, k]) * ", sum, "(B[k, j])\n");
}

TEST(TensorTilingTest, InstructionsFollowFromTypesAndTarget) {
  const auto for_types = [](const char* left, const char* right, const char* sum,
                            absl::string_view target) {
    return InstructionsFor(Product(left, right, sum, 32, 64, 64), target);
  };
  EXPECT_THAT(for_types("i8", "i8", "i32", "arm/neoverse-v1"),
              ElementsAre("sdot_4x4", "smmla_2x2x8"));
  EXPECT_THAT(for_types("u8", "u8", "i32", "arm/neoverse-v2"),
              ElementsAre("udot_4x4", "ummla_2x2x8"));
  EXPECT_THAT(for_types("u8", "i8", "i32", "arm/neoverse-v2"),
              ElementsAre("usdot_4x4", "usmmla_2x2x8"));
  EXPECT_THAT(for_types("bf16", "bf16", "f32", "arm/neoverse-v2"),
              ElementsAre("bfdot_4x2", "bfmmla_2x2x4"));
  EXPECT_THAT(for_types("i8", "i8", "i32", "arm/cortex-x1"), ElementsAre("sdot_4x4"));
  EXPECT_THAT(for_types("i8", "i8", "i32", "arm/cortex-a72"), IsEmpty());
  EXPECT_THAT(for_types("i8", "u8", "i32", "arm/neoverse-v2"), IsEmpty());
  EXPECT_THAT(for_types("u8", "i8", "i32", "x86-avx2"), ElementsAre("madd_u8i8_8x4"));
  EXPECT_THAT(for_types("i8", "i8", "i32", "x86-avx2"), ElementsAre("madd_i8_8x4"));
  EXPECT_THAT(for_types("u8", "u8", "i32", "x86-avx2"), ElementsAre("madd_u8_8x4"));
  EXPECT_THAT(for_types("i8", "u8", "i32", "x86-avx2"), IsEmpty());
}

// Of instructions with vectors of the same length, the one that the CPU has for it.
TEST(TensorTilingTest, AnInstructionOfTheCpuComesBeforeSeveral) {
  target::Target target = *target::TargetByName("x86-avx2");
  target.features = {"avx", "avx2", "avxvnni", "f16c", "fma"};
  EXPECT_THAT(InstructionsFor(Product("u8", "i8", "i32", 32, 64, 64), target),
              ElementsAre("avxvnni_8x4"));
  EXPECT_THAT(InstructionsFor(Product("i8", "i8", "i32", 32, 64, 64), target),
              ElementsAre("madd_i8_8x4"));
}

// Rounding up to whole blocks must not add much.
TEST(TensorTilingTest, BlocksAreFilled) {
  const auto for_shape = [](int m, int n, int k) {
    return InstructionsFor(Product("i8", "i8", "i32", m, n, k), "arm/neoverse-v2");
  };
  EXPECT_THAT(for_shape(31, 63, 61), ElementsAre("sdot_4x4", "smmla_2x2x8"));
  EXPECT_THAT(for_shape(3, 64, 64), ElementsAre("sdot_4x4"));
  EXPECT_THAT(for_shape(32, 5, 64), ElementsAre("smmla_2x2x8"));
  EXPECT_THAT(for_shape(32, 64, 10), ElementsAre("sdot_4x4"));
  EXPECT_THAT(for_shape(32, 64, 12), ElementsAre("sdot_4x4", "smmla_2x2x8"));
  EXPECT_THAT(for_shape(3, 5, 3), IsEmpty());
}

const char* const kWorkloads[] = {
    "quantized_dense m=14 n=20 k=24",
    "quantized_matmul m=12 n=36 k=40",
    // Padded: all axes, the rows, the sum.
    "quantized_dense m=15 n=23 k=29",
    "quantized_matmul m=13 n=20 k=24",
    "quantized_matmul m=12 n=20 k=31",
    // An element-wise consumer takes the blocks apart, without padding and with it.
    "workload uneven\n"
    "input A: u8[25, 47]\n"
    "input B: i8[47, 39] constant\n"
    "input S: f32[39] constant\n"
    "C[i: 25, j: 39] = sum(k: 47) i32(A[i, k]) * i32(B[k, j])\n"
    "output D[i: 25, j: 39] = max(f32(C[i, j]) * S[j], 0.0)\n",
    // The result is an output, too.
    "workload two_outputs\n"
    "input A: u8[26, 48]\n"
    "input B: i8[48, 40] constant\n"
    "output C[i: 26, j: 40] = sum(k: 48) i32(B[k, j]) * i32(A[i, k])\n"
    "output D[i: 26, j: 40] = max(C[i, j], 0)\n",
    "workload scaled\n"
    "input A: u8[26, 48]\n"
    "input B: i8[48, 40] constant\n"
    "input S: f32[40] constant\n"
    "C[i: 26, j: 40] = sum(k: 48) i32(A[i, k]) * i32(B[k, j])\n"
    "output D[i: 26, j: 40] = max(f32(C[i, j]) * S[j], 0.0)\n",
    // A reduction reads the result.
    "workload row_sums\n"
    "input A: i8[10, 16]\n"
    "input B: i8[16, 24] constant\n"
    "C[i: 10, j: 24] = sum(k: 16) i32(A[i, k]) * i32(B[k, j])\n"
    "output S[i: 10] = sum(j: 24) C[i, j] * C[i, j]\n",
    // Both operands are contiguous along the other axis; a batch.
    "workload transposed\n"
    "input A: i8[3, 32, 12]\n"
    "input B: i8[3, 28, 32]\n"
    "output C[b: 3, i: 12, j: 28] = sum(k: 32) i32(A[b, k, i]) * i32(B[b, j, k])\n",
    "workload bf16_product\n"
    "input A: bf16[18, 24]\n"
    "input B: bf16[24, 20]\n"
    "output C[i: 18, j: 20] = sum(k: 24) f32(A[i, k]) * f32(B[k, j])\n",
};

// Sums over windows, and rows that are not adjacent: an instruction for a single row reads them in
// place.
const char* const kWindows[] = {
    "quantized_conv2d n=1 h=7 w=9 ci=8 co=20 k=3 s=1 p=1",
    "quantized_conv2d n=2 h=9 w=8 ci=12 co=16 k=3 s=2 p=1",
    "quantized_conv2d n=1 h=9 w=10 ci=16 co=8 k=1 s=2 p=0",
    "quantized_conv2d n=2 h=6 w=8 ci=16 co=20 k=1 s=1 p=0",
    "quantized_conv2d n=1 h=8 w=8 ci=8 co=8 k=3 s=1 p=2 dil=2",
    // Padded: the channels of the image, the channels of the result.
    "quantized_conv2d n=1 h=10 w=11 ci=3 co=16 k=5 s=2 p=2",
    "quantized_conv2d n=1 h=6 w=6 ci=7 co=15 k=3 s=1 p=1",
    "quantized_conv2d n=1 h=6 w=6 ci=3 co=16 k=1 s=2 p=0",
    // Channels first: the taps of a row are contiguous.
    "workload planes\n"
    "input X: u8[1, 3, 9, 12]\n"
    "input W: i8[3, 4, 3, 16] constant\n"
    "output Y[n: 1, h: 7, w: 5, c: 16] = sum(r: 3, s: 4, k: 3) "
    "i32(X[n, k, h + r, 2*w + s]) * i32(W[r, s, k, c])\n",
    // An element-wise consumer.
    "workload scaled_image\n"
    "input X: u8[1, 6, 9, 8]\n"
    "input W: i8[3, 3, 8, 24] constant\n"
    "input S: f32[24] constant\n"
    "Y[n: 1, h: 6, w: 9, c: 24] = sum(r: 3, s: 3, k: 8 where 0 <= h + r - 1 < 6, "
    "0 <= w + s - 1 < 9) i32(X[n, h + r - 1, w + s - 1, k]) * i32(W[r, s, k, c])\n"
    "output Z[n: 1, h: 6, w: 9, c: 24] = u8(min(max(round(f32(Y[n, h, w, c]) * S[c]), 0.0), "
    "255.0))\n",
};

// Compares candidates of the spaces that use an instruction with the workload, and counts these
// spaces.
void CheckCandidates(absl::string_view text, int* used) {
  constexpr int kCandidates = 12;
  const auto workload = MakeWorkload(text);
  const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
  const std::vector<ir::Values> wanted = ir::Interpret(*workload, inputs).value();
  for (const auto& space : SpacesOf(text, "arm/neoverse-v2")) {
    if (InstructionOf(*space).empty()) continue;
    ++*used;
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(11, i);
      const auto drawn = space->Sample(rng);
      ASSERT_THAT(drawn, IsOk()) << space->name();
      const auto program = space->Replay(*drawn);
      ASSERT_THAT(program, IsOk()) << space->name();
      const auto computed = ir::Interpret(*program, inputs);
      ASSERT_THAT(computed, IsOk()) << program->ToText();
      ASSERT_EQ(*computed, wanted) << space->name() << "\n" << program->ToText();
    }
  }
}

class TensorWorkload : public testing::TestWithParam<const char*> {};

TEST_P(TensorWorkload, EveryCandidateComputesTheWorkload) {
  int used = 0;
  CheckCandidates(GetParam(), &used);
  EXPECT_GE(used, 4);
}

INSTANTIATE_TEST_SUITE_P(All, TensorWorkload, testing::ValuesIn(kWorkloads));

class TensorWindow : public testing::TestWithParam<const char*> {};

TEST_P(TensorWindow, EveryCandidateComputesTheWorkload) {
  int used = 0;
  CheckCandidates(GetParam(), &used);
  EXPECT_GE(used, 1);
  EXPECT_THAT(InstructionsFor(GetParam(), "arm/neoverse-v2"), ElementsAre("usdot_4x4"));
}

INSTANTIATE_TEST_SUITE_P(All, TensorWindow, testing::ValuesIn(kWindows));

// Three taps of a row are too few for an instruction.
TEST(TensorTilingTest, TapsThatAreReadInPlaceMustFillTheInstruction) {
  EXPECT_THAT(InstructionsFor("workload channels_first\n"
                              "input X: u8[8, 10]\n"
                              "input W: i8[3, 8, 16] constant\n"
                              "output Y[w: 8, c: 16] = sum(r: 3, k: 8) i32(X[k, w + r]) * "
                              "i32(W[r, k, c])\n",
                              "arm/neoverse-v2"),
              IsEmpty());
}

// What a search measures first uses the instruction with the most products.
TEST(TensorTilingTest, TheDraftProposesTheStrongestInstruction) {
  const struct {
    const char* workload;
    const char* target;
    const char* instruction;
  } kCases[] = {
      {"quantized_dense m=512 n=512 k=512", "arm/neoverse-v2", "usmmla_2x2x8"},
      {"quantized_dense m=512 n=512 k=512", "arm/neoverse-v1", "usmmla_2x2x8"},
      {"quantized_matmul m=256 n=1024 k=256", "arm/neoverse-v2", "usmmla_2x2x8"},
      {"quantized_conv2d n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1", "arm/neoverse-v2", "usdot_4x4"},
      {"quantized_conv2d n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1", "x86-avx512", "vnni_16x4"},
      {"quantized_conv2d n=1 h=28 w=28 ci=128 co=256 k=3 s=2 p=1", "x86-avx512", "vnni_16x4"},
      {"quantized_conv2d n=1 h=28 w=28 ci=512 co=128 k=1 s=1 p=0", "x86-avx512", "vnni_16x4"},
      {"quantized_conv2d n=1 h=56 w=56 ci=64 co=128 k=1 s=2 p=0", "x86-avx512", "vnni_16x4"},
      {"quantized_conv2d n=1 h=224 w=224 ci=3 co=64 k=7 s=2 p=3", "x86-avx512", "vnni_16x4"},
  };
  for (const auto& c : kCases) {
    target::Target target = *target::TargetByName(c.target);
    if (target.arch == "x86_64") {
      target.features.emplace_back("avx512vnni");
      std::ranges::sort(target.features);
    }
    target.cores = 4;  // with many cores, the estimate is that of the memory
    const Spaces spaces = *GenerateDesignSpaces(MakeWorkload(c.workload), target);
    search::SearchContext context{.target = target, .seed = 1, .threads = 1};
    for (const auto& space : spaces) context.spaces.push_back(space.get());
    const auto strategy = search::CreateSearchStrategy("portfolio", context).value();
    const record::Candidate first = strategy->Propose(1, 0, nullptr).value()[0];
    const auto chosen = std::ranges::find_if(
        spaces, [&](const auto& space) { return space->digest() == first.space_digest; });
    ASSERT_NE(chosen, spaces.end()) << c.workload;
    EXPECT_EQ(InstructionOf(**chosen), c.instruction) << c.workload << ": " << (*chosen)->name();
  }
}

}  // namespace
}  // namespace hone::space
