// Design spaces of alternative algorithms and of split reductions: which jobs they are offered to,
// that they compute the same result, and that they have the expected loop structure.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "common/ir/interpreter.h"
#include "common/schedule/rewrite/rewrite.h"
#include "server/tuner/space/generate.h"
#include "tests/common/schedule/tolerance_needed.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kRelaxed = 1e-3;
constexpr char kConv[] = "conv2d n=1 h=56 w=56 ci=64 co=64 k=3 s=1 p=1";

std::vector<std::unique_ptr<DesignSpace>> Generate(absl::string_view text, double tolerance,
                                                   const target::Target& target = Avx512()) {
  auto spaces = GenerateDesignSpaces(MakeWorkload(text), target, tolerance);
  EXPECT_THAT(spaces, IsOk()) << text;
  return spaces.ok() ? *std::move(spaces) : std::vector<std::unique_ptr<DesignSpace>>();
}

std::vector<std::unique_ptr<DesignSpace>> Rewritten(
    std::vector<std::unique_ptr<DesignSpace>> spaces) {
  std::erase_if(spaces,
                [](const auto& space) { return !absl::StrContains(space->text(), "rewrite("); });
  return spaces;
}

ir::Program AnyProgram(const DesignSpace& space) {
  Rng rng(1);
  return space.Replay(space.Sample(rng).value()).value();
}

ir::LoopKind KindAbove(const ir::Program& program, absl::string_view block, size_t from_inside) {
  const std::vector<ir::NodeId> loops = program.LoopsAbove(program.FindBlock(block));
  return program.node(loops[loops.size() - 1 - from_inside]).loop;
}

TEST(Algorithms, StrictJobGetsNoRewrites) {
  for (const char* text :
       {kConv, "conv2d_bn_relu n=1 h=14 w=14 ci=32 co=32 k=3 s=1 p=1", "matmul m=64 n=64 k=64"}) {
    EXPECT_TRUE(Rewritten(Generate(text, 0)).empty()) << text;
    EXPECT_TRUE(Rewritten(Generate(text, 1e-7)).empty()) << text;
  }
}

TEST(Algorithms, ToleranceDeterminesTheRewrites) {
  const auto workload = MakeWorkload(kConv);
  const double two = schedule::RewriteTolerance(*workload, "winograd", "Y", {2}).value();
  const double four = schedule::RewriteTolerance(*workload, "winograd", "Y", {4}).value();
  ASSERT_LT(two, four);
  for (const double tolerance : {two, four, kRelaxed}) {
    std::set<std::string> algorithms;
    for (const auto& space : Rewritten(Generate(kConv, tolerance))) {
      algorithms.insert(space->name().substr(0, space->name().find('_')));
      Rng rng(1);
      HONE_ASSERT_OK_AND_ASSIGN(const auto needed,
                                schedule::ToleranceNeeded(*space->workload(), space->trace(),
                                                          space->Sample(rng).value()));
      EXPECT_LE(needed, tolerance) << space->name();
    }
    EXPECT_TRUE(algorithms.contains("winograd2"));
    EXPECT_EQ(algorithms.contains("winograd4"), tolerance >= four);
  }
}

TEST(Algorithms, KeepsTheSpacesOfTheOriginalWorkload) {
  const auto strict = Generate(kConv, 0), relaxed = Generate(kConv, kRelaxed);
  ASSERT_GT(relaxed.size(), strict.size());
  for (size_t i = 0; i < strict.size(); ++i) EXPECT_EQ(strict[i]->text(), relaxed[i]->text());
}

TEST(Algorithms, UnsupportedShapesHaveNoRewrites) {
  for (const char* text : {"conv2d n=1 h=14 w=14 ci=32 co=32 k=3 s=2 p=1",
                           "conv2d n=1 h=14 w=14 ci=32 co=32 k=1 s=1 p=0",
                           "conv2d n=1 h=3 w=3 ci=32 co=32 k=3 s=1 p=0"}) {  // one output
    EXPECT_TRUE(Rewritten(Generate(text, kRelaxed)).empty()) << text;
  }
}

// Grouped convolutions have only spaces in which an axis of groups is one of the outer loops, and
// no block divides by the size of a group.
TEST(Algorithms, GroupsOfChannelsHaveAnAxis) {
  for (const char* text : {"conv2d n=1 h=14 w=14 ci=32 co=32 k=3 s=1 p=1 groups=4",
                           "conv2d_nchw n=1 h=14 w=14 ci=34 co=34 k=1 groups=2",
                           "conv2d_nchw n=1 h=14 w=14 ci=24 co=24 k=3 s=2 p=1 groups=3"}) {
    const auto spaces = Generate(text, kRelaxed);
    EXPECT_EQ(Rewritten(Generate(text, kRelaxed)).size(), spaces.size()) << text;
    for (const auto& space : spaces) {
      EXPECT_TRUE(absl::StartsWith(space->name(), "groups_tile") ||
                  absl::StartsWith(space->name(), "groups_transposed_tile"))
          << space->name();
      const ir::Program program = AnyProgram(*space);
      const ir::Block& block = program.BlockOf(program.FindBlock("Y"));
      program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
        if (!program.buffers[load.buffer].input) return;  // packed weights are padded
        for (const ir::Index& index : program.pool.IndicesOf(load)) {
          for (const ir::IndexTerm& term : index.terms())
            EXPECT_EQ(program.atoms[term.atom].kind, ir::Atom::Kind::kVar) << program.ToText();
        }
      });
    }
  }
}

// The vectors of a 1×1 convolution with channels first run along all pixels, unless the rows of the
// image are full vectors already.
TEST(Algorithms, PixelsAreJoined) {
  const auto count = [](absl::string_view text) { return Rewritten(Generate(text, 0)).size(); };
  EXPECT_GT(count("conv2d_nchw n=1 h=28 w=28 ci=16 co=16 k=1"), 0);
  EXPECT_EQ(count("conv2d_nchw n=1 h=32 w=32 ci=16 co=16 k=1"), 0);
  EXPECT_EQ(count("conv2d_nchw n=1 h=28 w=28 ci=16 co=16 k=1 s=2"), 0);
  EXPECT_EQ(count("conv2d n=1 h=28 w=28 ci=16 co=17 k=1"), 0);
}

// Windows over rows of an image get a padded copy, whose columns are in phases of the stride.
// Without padding and stride, the image is read as it is.
TEST(Algorithms, WindowsAlongTheVectorsGetACopyOfTheImage) {
  const auto copies = [](absl::string_view text) {
    const auto spaces = Generate(text, 0);
    return absl::c_count_if(
        spaces, [](const auto& space) { return absl::StartsWith(space->name(), "padded_window"); });
  };
  EXPECT_GT(copies("conv2d_nchw n=1 h=29 w=29 ci=8 co=8 k=3 s=1 p=1 groups=8"), 0);
  EXPECT_GT(copies("conv2d_nchw n=1 h=29 w=29 ci=8 co=8 k=3 s=2 p=1 groups=8"), 0);
  EXPECT_GT(copies("conv2d_nchw n=1 h=29 w=29 ci=8 co=8 k=3 s=2 p=0 groups=8"), 0);
  EXPECT_EQ(copies("conv2d_nchw n=1 h=29 w=29 ci=8 co=8 k=3 s=1 p=0 groups=8"), 0);
  EXPECT_EQ(copies("conv2d n=1 h=29 w=29 ci=8 co=8 k=3 s=2 p=1"), 0);
}

// The short axes of both transforms run in registers, and their tiles are distributed over threads.
TEST(Algorithms, TransformsAreUnrolledVectorizedAndParallel) {
  bool rows = false, alone = false;
  for (const auto& space : Rewritten(Generate(kConv, kRelaxed))) {
    const ir::Program program = AnyProgram(*space);
    for (const char* block : {"Y_v", "Y"}) {
      EXPECT_EQ(KindAbove(program, block, 0), ir::LoopKind::kVectorized) << space->name();
      EXPECT_EQ(KindAbove(program, block, 1), ir::LoopKind::kUnrolled) << space->name();
      EXPECT_EQ(KindAbove(program, block, 2), ir::LoopKind::kUnrolled) << space->name();
      EXPECT_EQ(program.node(program.LoopsAbove(program.FindBlock(block))[0]).loop,
                ir::LoopKind::kParallel)
          << space->name();
    }
    // The weights are transformed ahead of time and stored in panels.
    EXPECT_EQ(program.kernels.size(), 2u);
    EXPECT_THAT(space->text(), HasSubstr(" -> a0, a1, a3 / $0*16, a2, a3 % $0*16"));
    EXPECT_THAT(space->text(), Not(HasSubstr("cache_read")));
    const bool together = program.LoopsAbove(program.FindBlock("Y_v"))[0] ==
                          program.LoopsAbove(program.FindBlock("Y"))[0];
    EXPECT_EQ(together, absl::StrContains(space->name(), "rows")) << space->name();
    (together ? rows : alone) = true;
  }
  EXPECT_TRUE(rows && alone);
}

// The instructions before the first decision are replayed once per thread and cached.
TEST(Algorithms, ReplayingAgainGivesTheSameProgram) {
  const auto spaces = Rewritten(Generate(kConv, kRelaxed));
  for (uint64_t i = 0; i < 3; ++i) {
    for (const auto& space : spaces) {
      Rng rng(5, i);
      const std::vector<int64_t> decisions = space->Sample(rng).value();
      Digest fresh;
      std::thread([&] { fresh = space->Replay(decisions).value().StructuralDigest(); }).join();
      EXPECT_EQ(space->Replay(decisions).value().StructuralDigest(), fresh) << space->name();
    }
  }
}

TEST(Algorithms, TheOperatorWithTheSameStagesHasTheSameTransforms) {
  for (const auto& space : Generate("winograd_conv2d n=1 h=30 w=30 ci=64 co=64", 0)) {
    const ir::Program program = AnyProgram(*space);
    for (const char* block : {"V", "Y"}) {
      EXPECT_EQ(KindAbove(program, block, 1), ir::LoopKind::kUnrolled) << program.ToText();
      EXPECT_EQ(KindAbove(program, block, 2), ir::LoopKind::kUnrolled) << program.ToText();
    }
  }
}

class RewrittenWorkload : public testing::TestWithParam<const char*> {};

// F(2, 3) of small integers is exact; F(4, 3) has thirds in its weights.
TEST_P(RewrittenWorkload, EveryCandidateComputesTheWorkload) {
  constexpr int kCandidates = 3;
  for (const target::Target& target : {Avx512(), Avx2()}) {
    const auto workload = MakeWorkload(GetParam());
    const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
    const ir::Values wanted = ir::Interpret(*workload, inputs).value()[0];
    const auto spaces = Rewritten(Generate(GetParam(), kRelaxed, target));
    EXPECT_FALSE(spaces.empty());
    for (const auto& space : spaces) {
      const double bound = absl::StartsWith(space->name(), "winograd2") ? 0 : 1e-3;
      for (uint64_t i = 0; i < kCandidates; ++i) {
        Rng rng(11, i);
        const auto drawn = space->Sample(rng);
        ASSERT_THAT(drawn, IsOk()) << space->name();
        const auto program = space->Replay(*drawn);
        ASSERT_THAT(program, IsOk()) << space->name();
        const auto computed = ir::Interpret(*program, inputs);
        ASSERT_THAT(computed, IsOk()) << program->ToText();
        for (size_t e = 0; e < wanted.size(); ++e) {
          ASSERT_NEAR((*computed)[0][e], wanted[e], bound)
              << schedule::TraceFileText(*space->workload(), space->trace(), *drawn)
              << program->ToText();
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, RewrittenWorkload,
                         testing::Values("conv2d n=1 h=8 w=8 ci=6 co=24 k=3 s=1 p=0",
                                         "conv2d n=2 h=5 w=9 ci=3 co=37 k=3 s=1 p=1",
                                         "conv2d n=1 h=9 w=28 ci=17 co=16 k=3 s=1 p=1",
                                         "conv2d n=1 h=3 w=13 ci=1 co=29 k=3 s=1 p=1",
                                         "conv2d_bn_relu n=1 h=6 w=7 ci=5 co=18 k=3 s=1 p=1"));

target::Target WithBf16() {
  target::Target target = Avx512();
  target.features.push_back("avx512bf16");
  std::ranges::sort(target.features);
  return target;
}

std::vector<std::unique_ptr<DesignSpace>> OfBf16(absl::string_view text, double tolerance,
                                                 const target::Target& target) {
  auto spaces = Rewritten(Generate(text, tolerance, target));
  std::erase_if(spaces, [](const auto& space) { return !absl::StartsWith(space->name(), "bf16"); });
  return spaces;
}

TEST(Bf16, IsOfferedIfTheToleranceAndTheTargetAllowIt) {
  constexpr char kMatmul[] = "matmul m=64 n=64 k=64";
  EXPECT_FALSE(OfBf16(kMatmul, 8e-3, WithBf16()).empty());
  EXPECT_TRUE(OfBf16(kMatmul, 7e-3, WithBf16()).empty());
  EXPECT_TRUE(OfBf16(kMatmul, 8e-3, Avx512()).empty());
}

// Small integers are exact in bf16.
TEST(Bf16, InstructionsForDotProductsComputeTheWorkload) {
  for (const char* text : {"matmul m=20 n=32 k=24", "dense m=4 n=48 k=64",
                           "conv2d n=1 h=6 w=7 ci=16 co=32 k=3 s=1 p=1",
                           "conv2d n=1 h=9 w=9 ci=8 co=16 k=3 s=2 p=1"}) {
    const auto workload = MakeWorkload(text);
    const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
    const ir::Values wanted = ir::Interpret(*workload, inputs).value()[0];
    int with_instruction = 0;
    for (const auto& space : OfBf16(text, 8e-3, WithBf16())) {
      if (!absl::StrContains(space->name(), "bf16dot")) continue;
      ++with_instruction;
      for (uint64_t i = 0; i < 3; ++i) {
        Rng rng(7, i);
        const auto program = space->Replay(space->Sample(rng).value());
        ASSERT_THAT(program, IsOk()) << space->name();
        EXPECT_EQ(ir::Interpret(*program, inputs).value()[0], wanted) << program->ToText();
      }
    }
    EXPECT_GT(with_instruction, 0) << text;
  }
}

// A few results with long sums: the sums are split into parts that are distributed over threads.
class SplitReduction : public testing::TestWithParam<const char*> {};

TEST_P(SplitReduction, ThreadsShareOutTheParts) {
  target::Target target = Avx512();
  target.cores = 16;
  int split = 0;
  for (const auto& space : Generate(GetParam(), 0, target)) {
    if (!absl::StrContains(space->name(), "parts")) continue;
    ++split;
    for (uint64_t i = 0; i < 10; ++i) {
      Rng rng(3, i);
      const ir::Program program = space->Replay(space->Sample(rng).value()).value();
      const ir::NodeId partial = program.FindBlock("C_rf");
      ASSERT_NE(partial, ir::kNoNode) << space->name();
      const ir::Node& threads = program.node(program.LoopsAbove(partial)[0]);
      EXPECT_EQ(threads.loop, ir::LoopKind::kParallel) << program.ToText();
      EXPECT_GE(threads.extent.value, 16) << program.ToText();
      // There are fewer than 16 tiles of results; the parallelism comes from the parts.
      const ir::Buffer& parts = program.buffers[program.BlockOf(partial).outputs[0]];
      EXPECT_GE(parts.shape[0], 16);
      EXPECT_EQ(parts.shape.size(), 3u);
    }
  }
  EXPECT_GT(split, 0);
}
INSTANTIATE_TEST_SUITE_P(All, SplitReduction,
                         testing::Values("matmul m=1 n=64 k=8192", "matmul m=8 n=32 k=4096",
                                         "matmul m=16 n=48 k=3072", "dense m=2 n=100 k=16384"));

TEST(SplitReductions, AreNotGeneratedForManyResults) {
  for (const char* text :
       {"matmul m=1024 n=1024 k=1024", "matmul m=1 n=64 k=128", "matmul m=8 n=32 k=4099",
        "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1"}) {
    for (const auto& space : Generate(text, 0))
      EXPECT_THAT(space->name(), Not(HasSubstr("parts"))) << text;
  }
}

}  // namespace
}  // namespace hone::space
