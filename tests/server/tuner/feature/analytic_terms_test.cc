// The analytic estimate orders schedules as an expert on the machine would.
#include "server/tuner/feature/analytic_terms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/schedule/replay.h"
#include "tests/server/tuner/search/spaces.h"
#include "tests/status.h"

namespace hone::feature {
namespace {

using search::MatmulSpaces;
using search::TestSpaces;

// A machine with 32 vector registers of 16 lanes, 2 cores, 32 KiB and 1 MiB of cache.
AnalyticMachine Machine() {
  target::Target target = *target::TargetByName("x86-avx512");
  target.cores = 2;
  return AnalyticMachine::Of(target);
}

double CyclesOf(const ir::Program& program, const AnalyticMachine& machine) {
  Nest nest;
  EXPECT_THAT(nest.Analyze(program), IsOk());
  return EstimateCost(nest, machine).cycles;
}

double Cycles(const TestSpaces& spaces, absl::string_view name,
              const std::vector<int64_t>& decisions) {
  for (const auto& space : spaces.spaces()) {
    if (space->name() != name) continue;
    const absl::StatusOr<ir::Program> program = space->Replay(decisions);
    EXPECT_THAT(program, IsOk());
    return CyclesOf(*program, Machine());
  }
  ADD_FAILURE() << "no space " << name;
  return 0;
}

// Decisions of "strided" and "packed": rows, vectors, k unroll, then the tiles of j, k and i,
// outermost first.
TEST(AnalyticTermsTest, AccumulatorsMustHideTheLatencyOfTheMultiplyAdd) {
  const TestSpaces spaces = MatmulSpaces(512);
  const double one = Cycles(spaces, "strided", {1, 1, 1, 8, 64, 2, 256, 8, 64});
  const double four = Cycles(spaces, "strided", {4, 1, 1, 8, 64, 2, 256, 8, 64});
  const double sixteen = Cycles(spaces, "strided", {8, 2, 1, 8, 64, 2, 256, 8, 64});
  EXPECT_GT(one, 3 * four);
  EXPECT_GT(four, 1.2 * sixteen);
}

TEST(AnalyticTermsTest, AccumulatorsBeyondTheRegistersSpill) {
  const TestSpaces spaces = MatmulSpaces(512);
  const double fits = Cycles(spaces, "packed", {14, 2, 1, 8, 64, 2, 256, 2, 256});
  const double spills = Cycles(spaces, "packed", {16, 2, 1, 8, 64, 2, 256, 2, 256});
  EXPECT_GT(spills, 1.02 * fits);
}

// A row of 1024 floats has 4096 bytes, which maps all rows of B to the same sets of L1.
TEST(AnalyticTermsTest, RowsThatCollideInL1CostMoreThanPanels) {
  const TestSpaces collide = MatmulSpaces(1024), spread = MatmulSpaces(1056);
  const auto per_flop = [](double cycles, double size) { return cycles / (size * size * size); };
  const double colliding =
      per_flop(Cycles(collide, "strided", {8, 2, 1, 32, 32, 8, 128, 4, 256}), 1024);
  const double spreading =
      per_flop(Cycles(spread, "strided", {8, 2, 1, 33, 32, 8, 132, 4, 264}), 1056);
  EXPECT_GT(colliding, 1.05 * spreading);
}

// Six pixels of every other column occupy six lines of an L1 set, not the eleven of their bounding
// box.
TEST(AnalyticTermsTest, SkippedPixelsCostNothing) {
  const auto cycles = [](const char* image, const char* stride) {
    TestSpaces spaces("conv2d", {"n=1", absl::StrCat("h=", image), absl::StrCat("w=", image),
                                 "ci=1024", "co=512", "k=1", stride, "p=0"});
    spaces.Add("pixels", R"(
b0 = block("Y")
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "r, s, ci, co -> co / 64, r, s, ci, co % 64")
n, h, w, o, r, s, c = loops(b0)
p = fuse(h, w)
p0, o0, c0 = register_tile(b0, p, o, c, 6, 4, 16, 8)
reorder(n, o0, p0, c0)
t = fuse(n, o0, p0)
parallel(t)
)");
    return Cycles(spaces, "pixels", {});
  };
  EXPECT_LT(cycles("14", "s=2"), 1.2 * cycles("7", "s=1"));
}

TEST(AnalyticTermsTest, ThreeTasksOnTwoCoresTakeTwoRounds) {
  TestSpaces parts(96);
  parts.Add("parts", R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=0)
l3, l4 = split(l0, x0, x1)
parallel(l3)
)");
  const double one = Cycles(parts, "parts", {1, 96}), two = Cycles(parts, "parts", {2, 48});
  const double three = Cycles(parts, "parts", {3, 32}), many = Cycles(parts, "parts", {48, 2});
  EXPECT_NEAR(one / two, 2, 0.2);
  EXPECT_NEAR(three / two, 4.0 / 3, 0.1);
  EXPECT_NEAR(many / two, 1, 0.1);
}

// Two threads with 384 of 512 columns each: the first one has three quarters of the work.
TEST(AnalyticTermsTest, ATileOutsideIsTheLastCoresGain) {
  const auto cycles = [](int width) {
    TestSpaces spaces(512);
    spaces.Add("halves", absl::StrCat("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n",
                                      "l3, l4, l5 = register_tile(b0, l0, l1, l2, 8, 2, 16, 1)\n",
                                      "l6, l7 = split(l4, 0, ", width / 32, ")\n",
                                      "reorder(l6, l3, l7, l5)\nparallel(l6)\n"));
    return Cycles(spaces, "halves", {});
  };
  EXPECT_NEAR(cycles(384) / cycles(256), 1.5, 0.1);
}

// If each core computes some columns, the cores write alternating lines.
TEST(AnalyticTermsTest, CoresThatWriteAlternatingLinesDisturbEachOther) {
  const auto slowdown = [](const char* loops, int cores) {
    TestSpaces spaces("matmul", {"m=3136", "n=64", "k=4"});
    spaces.Add("panels",
               absl::StrCat("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n",
                            "l3, l4, l5 = register_tile(b0, l0, l1, l2, 8, 2, 16, 1)\n", "reorder(",
                            loops, ", l5)\nl6 = fuse(", loops, ")\nparallel(l6)\n"));
    const absl::StatusOr<ir::Program> program = spaces.spaces()[0]->Replay({});
    EXPECT_THAT(program, IsOk());
    AnalyticMachine machine = Machine();
    machine.cores = cores;
    const double cycles = CyclesOf(*program, machine);
    machine.contended_line_cycles = 0;
    return cycles / CyclesOf(*program, machine);
  };
  EXPECT_GT(slowdown("l4, l3", 2), 1.03);
  EXPECT_LT(slowdown("l3, l4", 2), 1.01);
  EXPECT_EQ(slowdown("l4, l3", 1), 1);
}

// A fused loop over rows and columns reads all of B for each tile of rows.
TEST(AnalyticTermsTest, AFusedLoopReadsWhatItsInnerPartMovesAgain) {
  const auto traffic = [](const char* loops) {
    TestSpaces spaces(512);
    spaces.Add("fused", absl::StrCat("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n",
                                     "l3, l4, l5 = register_tile(b0, l0, l1, l2, 8, 2, 16, 1)\n",
                                     "reorder(", loops, ", l5)\nl6 = fuse(", loops, ")\n"));
    const absl::StatusOr<ir::Program> program = spaces.spaces()[0]->Replay({});
    EXPECT_THAT(program, IsOk());
    Nest nest;
    EXPECT_THAT(nest.Analyze(*program), IsOk());
    return EstimateCost(nest, Machine()).statements[0].traffic_cycles[0];
  };
  // 64 tiles of rows load B, 1 MiB, each time; 16 tiles of columns load A, 1 MiB.
  const double lines_of_b = 512 * 512 * 4 / 64.0;
  EXPECT_GT(traffic("l3, l4"), 64 * lines_of_b * Machine().line_cycles[0]);
  EXPECT_GT(traffic("l4, l3"), 16 * lines_of_b * Machine().line_cycles[0]);
}

// B, 24 KiB, is used for each tile of rows, so that L1 keeps it even if the loop over tiles is
// split.
TEST(AnalyticTermsTest, LoopsThatDoNotMoveAnAccessDoNotLoadItAgain) {
  const auto traffic = [](const char* order) {
    TestSpaces spaces("matmul", {"m=4096", "n=32", "k=192"});
    spaces.Add("rows",
               absl::StrCat("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n",
                            "l3, l4, l5 = register_tile(b0, l0, l1, l2, 1, 2, 16, 1)\n", order));
    const absl::StatusOr<ir::Program> program = spaces.spaces()[0]->Replay({});
    EXPECT_THAT(program, IsOk());
    Nest nest;
    EXPECT_THAT(nest.Analyze(*program), IsOk());
    return EstimateCost(nest, Machine()).statements[0].traffic_cycles[0];
  };
  EXPECT_NEAR(traffic("l6, l7 = split(l3, 0, 8)\n") / traffic(""), 1, 0.05);
}

TEST(AnalyticTermsTest, EmptyLanesAndGathersCost) {
  TestSpaces spaces(128);
  for (const int lanes : {4, 16}) {
    spaces.Add(absl::StrCat("lanes", lanes), absl::StrCat(R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
l3, l4 = split(l1, 0, )",
                                                          lanes, R"()
reorder(l0, l3, l2, l4)
vectorize(l4)
)"));
  }
  spaces.Add("gather", R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
l3, l4 = split(l0, 0, 16)
reorder(l3, l1, l2, l4)
vectorize(l4)
)");
  const double sixteen = Cycles(spaces, "lanes16", {});
  EXPECT_NEAR(Cycles(spaces, "lanes4", {}) / sixteen, 4, 1);
  EXPECT_GT(Cycles(spaces, "gather", {}), 2 * sixteen);
}

// A register tile of 8×12 results in both traces: 24 sums, with 8 + 3 operands in a step of dot
// products and 4 + 6 in one of blocks.
TEST(AnalyticTermsTest, AnInstructionOfManyProductsCostsOnce) {
  const AnalyticMachine machine = AnalyticMachine::Of(*target::TargetByName("arm/neoverse-v2"));
  const auto terms_of = [&](absl::string_view name) {
    const auto file = schedule::ParseTraceFile(
        ReadFile(absl::StrCat("tests/bench/arm/", name, ".trace")).value());
    const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                          file->parsed.trace, file->parsed.decisions);
    EXPECT_THAT(program, IsOk());
    Nest nest;
    EXPECT_THAT(nest.Analyze(*program), IsOk());
    const AnalyticEstimate estimate = EstimateCost(nest, machine);
    for (size_t s = 0; s < estimate.statements.size(); ++s) {
      if (nest.statements()[s].block->reducer == ir::Reducer::kSum) return estimate.statements[s];
    }
    ADD_FAILURE() << "no sum";
    return AnalyticTerms();
  };
  constexpr double kProducts = 512.0 * 528 * 512;
  const AnalyticTerms dots = terms_of("sdot"), blocks = terms_of("smmla");
  EXPECT_EQ(dots.compute_cycles, kProducts / 16 / machine.fma_pipes);
  EXPECT_EQ(blocks.compute_cycles, kProducts / 32 / machine.fma_pipes);
  EXPECT_EQ(dots.accumulators, 24);
  EXPECT_EQ(blocks.accumulators, 24);
  EXPECT_DOUBLE_EQ(dots.port_cycles, kProducts / 16 / 24 * 11 / machine.loads);
  EXPECT_DOUBLE_EQ(blocks.port_cycles, kProducts / 32 / 24 * 10 / machine.loads);
  EXPECT_EQ(blocks.spill_cycles, 0);
  EXPECT_LT(blocks.cycles, 0.6 * dots.cycles);
}

// No instruction multiplies and adds integers. The computation of addresses costs nothing.
TEST(AnalyticTermsTest, IntegersAreMultipliedAndAdded) {
  const auto compute_cycles = [](absl::string_view dtype) {
    const std::string text =
        absl::StrCat("workload w\ninput A: ", dtype, "[64, 64]\ninput B: ", dtype,
                     "[64, 64]\noutput C[i: 64, j: 64] = sum(k: 64) A[i, k] * B[k, j]\n"
                     "trace 1\nb = block(\"C\")\ni, j, k = loops(b)\n"
                     "j0, j1 = split(j, 0, 16)\nreorder(i, j0, k, j1)\nvectorize(j1)\n");
    const auto file = schedule::ParseTraceFile(text);
    EXPECT_THAT(file, IsOk());
    const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                          file->parsed.trace, file->parsed.decisions);
    EXPECT_THAT(program, IsOk());
    Nest nest;
    EXPECT_THAT(nest.Analyze(*program), IsOk());
    return EstimateCost(nest, Machine()).statements[0].compute_cycles;
  };
  EXPECT_EQ(compute_cycles("i32"), 2 * compute_cycles("f32"));
}

TEST(AnalyticTermsTest, EveryProgramHasAPositiveFiniteTime) {
  const TestSpaces spaces = MatmulSpaces(256);
  for (const auto& space : spaces.spaces()) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      Rng rng(seed);
      const absl::StatusOr<ir::Program> program = space->Replay(*space->Sample(rng));
      if (!program.ok()) continue;
      const double cycles = CyclesOf(*program, Machine());
      ASSERT_TRUE(std::isfinite(cycles) && cycles > 0) << program->ToText();
      // No program is faster than the peak of both cores.
      EXPECT_GT(cycles, 256.0 * 256 * 256 / 16 / 2 / 2);
    }
  }
}

TEST(AnalyticTermsTest, AcceptsTargetsWithoutCachesAndVectors) {
  const TestSpaces spaces = MatmulSpaces(64);
  target::Target bare{.arch = "riscv64",
                      .vector_bits = 64,
                      .vector_registers = 1,
                      .l1_bytes = 1 << 10,
                      .l2_bytes = 0};
  Rng rng(1);
  for (const auto& space : spaces.spaces()) {
    const absl::StatusOr<ir::Program> program = space->Replay(*space->Sample(rng));
    if (!program.ok()) continue;
    EXPECT_TRUE(std::isfinite(CyclesOf(*program, AnalyticMachine::Of(bare))));
  }
}

TEST(AnalyticTermsTest, SplitVectorsHalveThroughput) {
  const auto of = [](absl::string_view cpu, int vector_bits) {
    return AnalyticMachine::Of({.cpu = std::string(cpu), .vector_bits = vector_bits});
  };
  for (const AnalyticMachine& halved : {of("znver4", 512), of("znver1", 256)}) {
    EXPECT_EQ(halved.fma_pipes, 1);
    EXPECT_EQ(halved.loads, 1);
    EXPECT_EQ(halved.stores, 0.5);
  }
  for (const AnalyticMachine& whole : {of("znver5", 512), of("znver4", 256), of("znver3", 256),
                                       of("znver2", 256), of("skylake-avx512", 512)}) {
    EXPECT_EQ(whole.fma_pipes, 2);
    EXPECT_EQ(whole.loads, 2);
    EXPECT_EQ(whole.stores, 1);
  }
  EXPECT_EQ(of("znver2", 256).fma_latency, 5);
  EXPECT_EQ(of("znver3", 256).fma_latency, 4);
}

TEST(AnalyticTermsTest, ACoreDoesNotReachTheCachesOfOtherChiplets) {
  // Sixteen 32 MiB L3 caches shared by eight cores each, and a single cache shared by eight cores.
  EXPECT_EQ(AnalyticMachine::Of({.cores = 128, .l3_bytes = 512 << 20}).l3_bytes, 64 << 20);
  EXPECT_EQ(AnalyticMachine::Of({.cores = 8, .l3_bytes = 32 << 20}).l3_bytes, 32 << 20);
}

}  // namespace
}  // namespace hone::feature
