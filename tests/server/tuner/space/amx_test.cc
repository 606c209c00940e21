// Design spaces of CPUs with AMX. Few machines have it, so candidates are checked as lowered
// programs and as LLVM's IR with simulated instructions. On a machine with AMX, they also run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/generate.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/verifier.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/simulated_tiles.h"
#include "worker/compile/llvm/compile.h"
#include "worker/compile/lower/lower.h"

namespace hone::space {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Spaces = std::vector<std::unique_ptr<DesignSpace>>;

target::Target SapphireRapids() { return *target::TargetByName("intel/sapphirerapids"); }

Spaces SpacesWithTiles(absl::string_view workload, double tolerance = 0) {
  auto spaces = GenerateDesignSpaces(MakeWorkload(workload), SapphireRapids(), tolerance);
  EXPECT_THAT(spaces, IsOk()) << workload;
  if (!spaces.ok()) return {};
  std::erase_if(*spaces, [](const auto& space) {
    return !absl::StrContains(space->trace().ToText(), "\"amx_");
  });
  return *std::move(spaces);
}

std::set<std::string> NamesOf(const Spaces& spaces) {
  std::set<std::string> names;
  for (const auto& space : spaces) names.insert(space->name());
  return names;
}

std::string ProductOfBytes(absl::string_view left, absl::string_view right, int m, int n, int k) {
  return absl::StrCat("workload w\ninput A: ", left, "[", m, ", ", k, "]\ninput B: ", right, "[", k,
                      ", ", n, "] constant\noutput C[i: ", m, ", j: ", n, "] = sum(k: ", k,
                      ") i32(A[i, k]) * i32(B[k, j])\n");
}

TEST(AmxTest, EachPairOfTypesHasAnInstruction) {
  const auto names = [](const char* left, const char* right) {
    return NamesOf(SpacesWithTiles(ProductOfBytes(left, right, 64, 64, 128)));
  };
  EXPECT_THAT(names("u8", "i8"), ElementsAre("amx_u8i8_16x16x64", "amx_u8i8_16x16x64_tiled"));
  EXPECT_THAT(names("i8", "i8"), ElementsAre("amx_i8_16x16x64", "amx_i8_16x16x64_tiled"));
  EXPECT_THAT(names("u8", "u8"), ElementsAre("amx_u8_16x16x64", "amx_u8_16x16x64_tiled"));
  EXPECT_THAT(names("i8", "u8"), IsEmpty());
}

// Products of f32 become products of bf16 if the tolerance allows it.
TEST(AmxTest, ProductsOfFloatsNeedATolerance) {
  EXPECT_THAT(NamesOf(SpacesWithTiles("dense m=64 n=64 k=64")), IsEmpty());
  EXPECT_THAT(NamesOf(SpacesWithTiles("dense m=64 n=64 k=64", 1e-2)),
              testing::Contains("bf16_amx_bf16_16x16x32"));
}

// Images with 14, 28 or 56 columns are read in place.
TEST(AmxTest, TilesHaveTheRowsThatAddTheLeast) {
  const auto names = [](absl::string_view workload) { return NamesOf(SpacesWithTiles(workload)); };
  EXPECT_THAT(names("quantized_conv2d n=1 h=56 w=56 ci=64 co=64 k=1 s=1 p=0"),
              ElementsAre("amx_u8i8_14x16x64"));
  EXPECT_THAT(names("quantized_conv2d n=1 h=32 w=112 ci=64 co=64 k=1 s=1 p=0"),
              ElementsAre("amx_u8i8_16x16x64"));
  // Lines of 20 pixels do not fill tiles, and all 400 do.
  EXPECT_THAT(names("quantized_conv2d n=1 h=20 w=20 ci=64 co=64 k=1 s=1 p=0"),
              ElementsAre("pixels_amx_u8i8_16x16x64", "pixels_amx_u8i8_16x16x64_tiled"));
  EXPECT_THAT(names(ProductOfBytes("u8", "i8", 197, 64, 64)),
              testing::Contains("amx_u8i8_16x16x64"));
  EXPECT_THAT(names(ProductOfBytes("u8", "i8", 50, 64, 64)),
              testing::Contains("amx_u8i8_14x16x64"));
}

TEST(AmxTest, NamesOfTensorsDoNotMatter) {
  const Spaces spaces = SpacesWithTiles(
      "workload names\ninput Y_q: u8[7, 7, 64]\ninput Y_p: i8[3, 3, 64, 16] constant\n"
      "output Y[h: 7, w: 7, o: 16] = sum(r: 3, s: 3, c: 64 where 0 <= h + r - 1 < 7, 0 <= w + s - "
      "1 < 7) i32(Y_q[h + r - 1, w + s - 1, c]) * i32(Y_p[r, s, c, o])\n");
  EXPECT_THAT(NamesOf(spaces), ElementsAre("rows_amx_u8i8_16x16x64"));
}

TEST(AmxTest, TilesMustBeFilled) {
  const auto spaces = [](int m, int n, int k) {
    return SpacesWithTiles(ProductOfBytes("u8", "i8", m, n, k)).size();
  };
  EXPECT_GT(spaces(15, 31, 61), 0u);
  EXPECT_EQ(spaces(4, 64, 64), 0u);
  EXPECT_EQ(spaces(64, 10, 64), 0u);
  EXPECT_EQ(spaces(64, 64, 32), 0u);
}

const char* const kWorkloads[] = {
    "quantized_dense m=32 n=48 k=128",
    "quantized_matmul m=32 n=32 k=64",
    // Padded: all axes.
    "quantized_dense m=29 n=45 k=121",
    // Registers for six tiles of sums, and a sum of one instruction.
    "quantized_dense m=96 n=16 k=64",
    // An element-wise consumer, without padding and with it.
    "workload scaled\n"
    "input A: u8[32, 128]\n"
    "input B: i8[128, 32] constant\n"
    "input S: f32[32] constant\n"
    "C[i: 32, j: 32] = sum(k: 128) i32(A[i, k]) * i32(B[k, j])\n"
    "output D[i: 32, j: 32] = max(f32(C[i, j]) * S[j], 0.0)\n",
    "workload scaled_uneven\n"
    "input A: u8[31, 60]\n"
    "input B: i8[60, 30] constant\n"
    "input S: f32[30] constant\n"
    "C[i: 31, j: 30] = sum(k: 60) i32(A[i, k]) * i32(B[k, j])\n"
    "output D[i: 31, j: 30] = max(f32(C[i, j]) * S[j], 0.0)\n",
    // Both operands are contiguous along the other axis; a batch; signed and unsigned bytes.
    "workload transposed\n"
    "input A: i8[2, 64, 32]\n"
    "input B: i8[2, 16, 64]\n"
    "output C[b: 2, i: 32, j: 16] = sum(k: 64) i32(A[b, k, i]) * i32(B[b, j, k])\n",
    "workload unsigned\n"
    "input A: u8[16, 128]\n"
    "input B: u8[128, 32]\n"
    "output C[i: 16, j: 32] = sum(k: 128) i32(A[i, k]) * i32(B[k, j])\n",
    "workload bf16_product\n"
    "input A: bf16[32, 64]\n"
    "input B: bf16[64, 32]\n"
    "output C[i: 32, j: 32] = sum(k: 64) f32(A[i, k]) * f32(B[k, j])\n",
    // Tiles of 14 rows.
    "quantized_dense m=41 n=16 k=128",
    // The pixels of an image; windows without a border.
    "quantized_conv2d n=1 h=2 w=16 ci=64 co=32 k=1 s=1 p=0",
    "quantized_conv2d n=1 h=2 w=28 ci=64 co=16 k=1 s=1 p=0",
    // Padding, lines that do not fill tiles, a stride, and few channels.
    "quantized_conv2d n=1 h=4 w=14 ci=64 co=16 k=3 s=1 p=1",
    "quantized_conv2d n=1 h=5 w=7 ci=64 co=16 k=3 s=1 p=1",
    "quantized_conv2d n=1 h=14 w=14 ci=64 co=16 k=3 s=2 p=1",
    "quantized_conv2d n=1 h=4 w=14 ci=90 co=16 k=3 s=1 p=1",
    "quantized_conv2d n=1 h=6 w=32 ci=3 co=16 k=7 s=2 p=3",
    "quantized_conv2d n=1 h=7 w=7 ci=64 co=16 k=1 s=1 p=0",
    // Few channels, each of which is a plane.
    "workload planes\n"
    "input Q: u8[3, 6, 32]\n"
    "input W: i8[7, 7, 3, 16] constant\n"
    "X[h: 6, w: 32, c: 3] = Q[c, h, w]\n"
    "output Y[h: 3, w: 16, o: 16] = sum(r: 7, s: 7, c: 3 where 0 <= 2*h + r - 3 < 6, 0 <= 2*w + s "
    "- 3 < 32) i32(X[2*h + r - 3, 2*w + s - 3, c]) * i32(W[r, s, c, o])\n",
    // No padding, and rows that are not at equal distances in the image.
    "quantized_conv2d n=1 h=9 w=17 ci=64 co=16 k=3 s=2 p=0",
    // The channels are the outer reduction.
    "workload channels_outside\n"
    "input X: u8[7, 7, 64]\n"
    "input W: i8[3, 3, 64, 16] constant\n"
    "output Y[h: 7, w: 7, o: 16] = sum(c: 64, r: 3, s: 3 where 0 <= h + r - 1 < 7, 0 <= w + s - 1 "
    "< "
    "7) i32(X[h + r - 1, w + s - 1, c]) * i32(W[r, s, c, o])\n",
    "workload windows\n"
    "input X: u8[4, 33, 64]\n"
    "input W: i8[2, 2, 64, 16] constant\n"
    "output Y[h: 3, w: 16, c: 16] = sum(r: 2, s: 2, k: 64) "
    "i32(X[h + r, 2*w + s, k]) * i32(W[r, s, k, c])\n",
};

int Count(absl::string_view text, absl::string_view word) {
  int count = 0;
  for (size_t at = text.find(word); at != absl::string_view::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// The assembly loads and stores tiles where LLVM's IR does, and nowhere else.
void ExpectNoSpills(const lower::LoweredProgram& program, const target::Target& target) {
  const auto compiled = codegen::Compile(program, target, {.keep_ir = true, .keep_assembly = true});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_GT(Count(compiled->assembly, "\ttdp"), 0);
  EXPECT_EQ(Count(compiled->assembly, "\ttilestored\t"),
            Count(compiled->ir, "call void @llvm.x86.tilestored64.internal("))
      << compiled->assembly;
  EXPECT_EQ(Count(compiled->assembly, "\ttileloadd\t"),
            Count(compiled->ir, "call x86_amx @llvm.x86.tileloadd64.internal("))
      << compiled->assembly;
  EXPECT_EQ(Count(compiled->assembly, "\ttilerelease"), Count(compiled->assembly, "\tldtilecfg"));
}

void ExpectRuns(const absl::StatusOr<std::unique_ptr<codegen::CompiledProgram>>& loaded,
                const std::vector<ir::Values>& inputs, const std::vector<ir::Values>& wanted) {
  ASSERT_THAT(loaded, IsOk());
  const auto outputs = (*loaded)->Run(inputs);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ(*outputs, wanted);
}

class AmxWorkload : public testing::TestWithParam<const char*> {};

TEST_P(AmxWorkload, CandidatesComputeTheWorkload) {
  constexpr uint64_t kCandidates = 3;
  const auto workload = MakeWorkload(GetParam());
  const target::Target target = SapphireRapids();
  const target::Target host = target::DetectHost();
  const bool has_tiles =
      std::ranges::all_of(target.features, [&](const auto& name) { return host.HasFeature(name); });
  const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
  const std::vector<ir::Values> wanted = ir::Interpret(*workload, inputs).value();
  std::vector<ir::Scalars> scalars, wanted_scalars;
  for (const ir::Values& values : inputs) scalars.emplace_back(values.begin(), values.end());
  for (const ir::Values& values : wanted) wanted_scalars.emplace_back(values.begin(), values.end());
  const Spaces spaces = SpacesWithTiles(GetParam());
  EXPECT_THAT(spaces, testing::Not(IsEmpty()));
  for (const auto& space : spaces) {
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(17, i);
      HONE_ASSERT_OK_AND_ASSIGN(const auto drawn, space->Sample(rng));
      const auto program = space->Replay(drawn);
      ASSERT_THAT(program, IsOk()) << space->name();
      const auto lowered = lower::Lower(*program, target);
      ASSERT_THAT(lowered, IsOk()) << program->ToText();
      ASSERT_THAT(lower::Verify(*lowered), IsOk()) << lowered->ToText();
      const auto computed = lower::Interpret(*lowered, *program->shared_workload(), scalars);
      ASSERT_THAT(computed, IsOk()) << lowered->ToText();
      ASSERT_EQ(*computed, wanted_scalars) << space->name() << "\n" << lowered->ToText();
      if (i == 0) ExpectNoSpills(*lowered, target);
      if (!host.HasFeature("avx2")) continue;
      ExpectRuns(codegen::LoadWithSimulatedTiles(*program, target), inputs, wanted);
      if (has_tiles) ExpectRuns(codegen::CompiledProgram::Load(*program, target), inputs, wanted);
      if (HasFailure()) GTEST_FAIL() << space->name() << "\n" << lowered->ToText();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AmxWorkload, testing::ValuesIn(kWorkloads));

// What a search measures first uses the tiles.
TEST(AmxTest, TheDraftProposesTiles) {
  const struct {
    const char* workload;
    double tolerance;
  } kCases[] = {{"quantized_dense m=512 n=512 k=512", 0},
                {"quantized_matmul m=256 n=1024 k=256", 0},
                {"dense m=512 n=512 k=512", 1e-2}};
  for (const auto& c : kCases) {
    target::Target target = SapphireRapids();
    target.cores = 4;  // with many cores, the estimate is that of the memory
    const Spaces spaces = *GenerateDesignSpaces(MakeWorkload(c.workload), target, c.tolerance);
    search::SearchContext context{.target = target, .seed = 1, .threads = 1};
    for (const auto& space : spaces) context.spaces.push_back(space.get());
    const auto strategy = search::CreateSearchStrategy("portfolio", context).value();
    const record::Candidate first = strategy->Propose(1, 0, nullptr).value()[0];
    for (const auto& space : spaces) {
      if (space->digest() != first.space_digest) continue;
      EXPECT_TRUE(absl::StrContains(space->name(), "amx_")) << c.workload << ": " << space->name();
    }
  }
}

}  // namespace
}  // namespace hone::space
