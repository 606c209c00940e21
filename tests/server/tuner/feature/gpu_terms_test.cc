// The analytic estimate for GPUs against counts by hand.
#include "server/tuner/feature/gpu_terms.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/status.h"

namespace hone::feature {
namespace {

// 108 units of 2048 threads in warps of 32, 64 multiply-adds per cycle, 164 KiB of shared memory.
GpuMachine GpuOfTest(bool shuffles = false) {
  target::Target target = target::TargetByName("generic/opencl").value();
  if (shuffles) target.features = {"shuffle"};
  target.cores = 108;
  target.l2_bytes = 40 << 20;
  target.gpu = {.max_threads = 1024,
                .shared_bytes = 48 << 10,
                .sub_group = 32,
                .registers = 255,
                .unit_threads = 2048,
                .unit_shared_bytes = 164 << 10,
                .unit_registers = 65536};
  return GpuMachine::Of(target);
}

GpuTerms TermsOf(absl::string_view workload, absl::string_view trace, bool shuffles = false) {
  const auto file = schedule::ParseTraceFile(absl::StrCat(workload, "trace 1\n", trace));
  EXPECT_THAT(file, IsOk());
  const auto replayed = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                         file->parsed.trace, {});
  EXPECT_THAT(replayed, IsOk());
  const ir::Program& program = *replayed;
  Nest nest;
  EXPECT_THAT(nest.Analyze(program), IsOk());
  const GpuEstimate estimate = EstimateGpuCost(nest, GpuOfTest(shuffles));
  EXPECT_EQ(estimate.launches.size(), 1u);
  return estimate.launches[0];
}

TEST(GpuTerms, ConstantsAreReplacedByWhatWasMeasured) {
  target::Target target = target::TargetByName("nvidia/a100").value();
  const GpuMachine preset = GpuMachine::Of(target);
  target.calibration = {.fma = 0.25, .memory_shared_line = 0.04, .launch = 3000};
  const GpuMachine machine = GpuMachine::Of(target);
  const double cycle_ns = 0.25 * preset.fma_lanes / 32;
  EXPECT_DOUBLE_EQ(machine.memory_bytes_per_cycle, 64 / 0.04 * cycle_ns / 108);
  EXPECT_DOUBLE_EQ(machine.launch_cycles, 3000 / cycle_ns);
  EXPECT_EQ(machine.fma_lanes, preset.fma_lanes);
  // Without the length of a cycle, nothing can be converted.
  target.calibration.fma = 0;
  EXPECT_EQ(GpuMachine::Of(target).launch_cycles, preset.launch_cycles);
}

constexpr char kCopy[] =
    "workload copy\ninput A: f32[1024, 1024]\noutput C[i: 1024, j: 1024] = A[i, j] * 2.0\n";

// Threads along the rows: 32 threads read 128 contiguous bytes. Threads across the rows: each reads
// 4 bytes of a sector of 32.
TEST(GpuTerms, ThreadsAcrossRowsWasteSectors) {
  const char* const along =
      "b0 = block(\"C\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, 256)\n"
      "l4 = fuse(l0, l2)\nbind(l4, \"blockIdx.x\")\nbind(l3, \"threadIdx.x\")\n";
  const char* const across =
      "b0 = block(\"C\")\nl0, l1 = loops(b0)\nl2, l3 = split(l0, 0, 256)\n"
      "reorder(l2, l1, l3)\nl4 = fuse(l2, l1)\nbind(l4, \"blockIdx.x\")\n"
      "bind(l3, \"threadIdx.x\")\n";
  const GpuTerms good = TermsOf(kCopy, along), bad = TermsOf(kCopy, across);
  EXPECT_EQ(good.blocks, 4096);
  EXPECT_EQ(good.threads, 256);
  EXPECT_DOUBLE_EQ(good.coalesced, 1);
  EXPECT_DOUBLE_EQ(bad.coalesced, 1.0 / 8);
  // 8 warps load and store 128 bytes each, at 64 bytes per cycle.
  EXPECT_DOUBLE_EQ(good.l1_cycles, 8 * 2 * 128 / 64.0);
  EXPECT_DOUBLE_EQ(bad.l1_cycles, 8 * good.l1_cycles);
  EXPECT_DOUBLE_EQ(good.memory_bytes, 2 * 4.0 * 1024 * 1024);
  EXPECT_GT(bad.cycles, 1.5 * good.cycles);
}

// A tile of 32 × 32 is transposed in shared memory. Its columns lie in one bank unless its rows are
// padded to 33 elements.
std::string Transposed(int64_t padding) {
  return absl::StrCat(
      "b0 = block(\"C\")\nl0, l1 = loops(b0)\nl2, l3 = split(l0, 0, 32)\n"
      "l4, l5 = split(l1, 0, 32)\nreorder(l2, l4, l3, l5)\n"
      "b1 = cache_read(b0, \"A\", \"shared\")\nstorage_align(b1, 0, 32, ",
      padding,
      ")\ncompute_at(b1, l4)\nbind(l2, \"blockIdx.y\")\nbind(l4, \"blockIdx.x\")\n"
      "bind(l3, \"threadIdx.y\")\nbind(l5, \"threadIdx.x\")\n"
      "l6, l7, l8, l9 = loops(b1)\nbind(l8, \"threadIdx.y\")\nbind(l9, \"threadIdx.x\")\n");
}

TEST(GpuTerms, ColumnsOfATileAreInOneBankUnlessItIsPadded) {
  constexpr char kTranspose[] =
      "workload transpose\ninput A: f32[1024, 1024]\noutput C[i: 1024, j: 1024] = A[j, i]\n";
  const GpuTerms conflicts = TermsOf(kTranspose, Transposed(0)),
                 none = TermsOf(kTranspose, Transposed(1));
  EXPECT_EQ(conflicts.shared_bytes, 32 * 32 * 4);
  EXPECT_EQ(none.shared_bytes, 32 * 33 * 4);
  // 32 warps store a row each in one pass, and read a column each: in 32 passes, or in one.
  EXPECT_DOUBLE_EQ(none.shared_cycles, 32 + 32);
  EXPECT_DOUBLE_EQ(conflicts.shared_cycles, 32 + 32 * 32);
  EXPECT_DOUBLE_EQ(none.conflicts, 1);
  EXPECT_DOUBLE_EQ(none.coalesced, 1);
  EXPECT_GT(conflicts.cycles, none.cycles);
}

// Blocks of 1024 threads: two are resident. The last of 2 · 108 + 1 blocks needs a wave of its own.
TEST(GpuTerms, ABlockBeyondAWaveWaitsForTheNextOne) {
  const auto terms = [](int64_t blocks) {
    const std::string workload =
        absl::StrCat("workload rows\ninput A: f32[", blocks, ", 1024]\noutput C[i: ", blocks,
                     ", j: 1024] = exp(exp(exp(exp(A[i, j]))))\n");
    return TermsOf(workload,
                   "b0 = block(\"C\")\nl0, l1 = loops(b0)\nbind(l0, \"blockIdx.x\")\n"
                   "bind(l1, \"threadIdx.x\")\n");
  };
  const GpuTerms full = terms(216), more = terms(217);
  EXPECT_EQ(full.resident, 2);
  EXPECT_DOUBLE_EQ(full.occupancy, 1);
  EXPECT_DOUBLE_EQ(full.waves, 1);
  EXPECT_GT(more.cycles - GpuOfTest().launch_cycles,
            1.3 * (full.cycles - GpuOfTest().launch_cycles));
}

// Each thread computes 8 × 8 results of C in local memory: 64 accumulators, and 16 operands per
// step. Its 65536 multiply-adds take a block of 256 threads 64 · 1024 · 256 / 64 cycles.
TEST(GpuTerms, AccumulatorsAreRegistersAndSharedTilesLimitTheBlocks) {
  const GpuTerms terms = TermsOf(
      "workload matmul\ninput A: f32[256, 1024]\ninput B: f32[1024, 256]\n"
      "output C[i: 256, j: 256] = sum(k: 1024) A[i, k] * B[k, j]\n",
      "b0 = block(\"C\")\nb1 = cache_write(b0, \"local\")\nl0, l1, l2 = loops(b0)\n"
      "l3, l4, l5 = split(l0, 0, 16, 8)\nl6, l7, l8 = split(l1, 0, 16, 8)\n"
      "l9, l10 = split(l2, 0, 16)\nreorder(l3, l6, l9, l4, l7, l10, l5, l8)\n"
      "b2 = cache_read(b0, \"A\", \"shared\")\ncompute_at(b2, l9)\n"
      "b3 = cache_read(b0, \"B\", \"shared\")\ncompute_at(b3, l9)\n"
      "reverse_compute_at(b1, l6)\nbind(l3, \"blockIdx.y\")\nbind(l6, \"blockIdx.x\")\n"
      "bind(l4, \"threadIdx.y\")\nbind(l7, \"threadIdx.x\")\nunroll(l5)\nunroll(l8)\n"
      "l11, l12, l13, l14, l15 = loops(b2)\nl16, l17 = split(l14, 0, 16)\n"
      "reorder(l17, l15, l16)\nbind(l17, \"threadIdx.y\")\nbind(l15, \"threadIdx.x\")\n"
      "l18, l19, l20, l21, l22 = loops(b3)\nl23, l24 = split(l22, 0, 16)\n"
      "reorder(l21, l24, l23)\nbind(l21, \"threadIdx.y\")\nbind(l24, \"threadIdx.x\")\n"
      "l25, l26, l27, l28 = loops(b1)\nl29, l30 = split(l27, 0, 8)\nl31, l32 = split(l28, 0, 8)\n"
      "reorder(l29, l31, l30, l32)\nbind(l29, \"threadIdx.y\")\nbind(l31, \"threadIdx.x\")\n");
  EXPECT_EQ(terms.blocks, 4);
  EXPECT_EQ(terms.threads, 256);
  EXPECT_EQ(terms.shared_bytes, 2 * 128 * 16 * 4);
  EXPECT_EQ(terms.registers, 64 + 16 + 24);
  EXPECT_EQ(terms.resident, 2);  // 65536 registers / (104 · 256)
  EXPECT_NEAR(terms.compute_cycles, 64 * 1024 * 256 / 64.0, 0.1 * 64 * 1024 * 256 / 64.0);
  // The product, and one operation for each element that a copy moves.
  const double copied = 4 * 64 * 2 * 128 * 16.0 + 256 * 256;
  EXPECT_DOUBLE_EQ(terms.operations, 2.0 * 256 * 256 * 1024 + copied);
}

// All threads of a warp load the same element, which takes a cycle for each of the 8 warps.
TEST(GpuTerms, ALoadTakesACycle) {
  const GpuTerms terms =
      TermsOf("workload spread\ninput A: f32[64]\noutput C[i: 64, j: 256] = A[i] * 2.0\n",
              "b0 = block(\"C\")\nl0, l1 = loops(b0)\nbind(l0, \"blockIdx.x\")\n"
              "bind(l1, \"threadIdx.x\")\n");
  EXPECT_DOUBLE_EQ(terms.l1_cycles, 8 + 8 * 128 / 64.0);
}

// A thread computes 4 x 4 sums of products.
double CyclesOfTile(absl::string_view type, absl::string_view guard, absl::string_view product) {
  return TermsOf(absl::StrCat("workload tile\ninput A: ", type, "[258, 514]\ninput B: ", type,
                              "[512, 256]\noutput C[i: 256, j: 256] = sum(k: 512", guard, ") ",
                              product, "\n"),
                 "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nl3, l4 = split(l0, 0, 4)\n"
                 "l5, l6, l7 = split(l1, 0, 64, 4)\nreorder(l3, l5, l6, l2, l4, l7)\n"
                 "bind(l3, \"blockIdx.y\")\nbind(l5, \"blockIdx.x\")\n"
                 "bind(l6, \"threadIdx.x\")\nunroll(l4)\nvectorize(l7)\n")
      .compute_cycles;
}

TEST(GpuTerms, AddressesAndConversionsAreSharedByATile) {
  const double plain = CyclesOfTile("f32", "", "A[i, k] * B[k, j]");
  EXPECT_DOUBLE_EQ(CyclesOfTile("f32", "", "A[i + 1, k + 2] * B[k, j]"), plain);
  // 16 multiply-adds and 8 conversions.
  EXPECT_NEAR(CyclesOfTile("f16", "", "f32(A[i, k]) * f32(B[k, j])") / plain, 1.5, 0.1);
}

TEST(GpuTerms, WarpsAtABorderRunSeveralPaths) {
  EXPECT_DOUBLE_EQ(CyclesOfTile("f32", " where 0 <= i + k - 1 < 256", "A[i, k] * B[k, j]"),
                   1.5 * CyclesOfTile("f32", "", "A[i, k] * B[k, j]"));
}

// 1024 threads of 88 registers do not fit onto a unit of 65536, so each has 64.
TEST(GpuTerms, BlocksWithTooManyRegistersSpill) {
  const auto cycles = [](int64_t threads) {
    return TermsOf(
               "workload tile\ninput A: f32[512, 512]\ninput B: f32[512, 8192]\n"
               "output C[i: 512, j: 8192] = sum(k: 512) A[i, k] * B[k, j]\n",
               absl::StrCat("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n"
                            "l3, l4 = split(l0, 0, 8)\nl5, l6, l7 = split(l1, 0, ",
                            threads,
                            ", 8)\nreorder(l3, l5, l6, l2, l4, l7)\n"
                            "bind(l3, \"blockIdx.y\")\nbind(l5, \"blockIdx.x\")\n"
                            "bind(l6, \"threadIdx.x\")\nunroll(l4)\nunroll(l7)\n"))
               .compute_cycles /
           static_cast<double>(threads);
  };
  EXPECT_NEAR(cycles(1024) / cycles(512), 1 + 4 * (88 / 64.0 - 1), 0.05);
}

// 256 threads sum up a row each: 4 serial steps, then a tree of 8 steps in 1 KiB of shared memory.
// An instruction that adds four products counts once, and its four bytes are one load.
TEST(GpuTerms, AnInstructionAddsSeveralProducts) {
  constexpr char kRows[] =
      "workload rows\ninput A: i8[128, 64]\ninput B: i8[128, 64]\n"
      "output C[i: 128, j: 128] = sum(k: 64) i32(A[i, k]) * i32(B[j, k])\n";
  const auto terms = [&](absl::string_view last) {
    return TermsOf(kRows, absl::StrCat("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n"
                                       "l3, l4 = split(l2, 16, 4)\nbind(l0, \"blockIdx.x\")\n"
                                       "bind(l1, \"threadIdx.x\")\n",
                                       last));
  };
  const GpuTerms one = terms("unroll(l4)\n"), four = terms("tensorize(l4, \"dp4a_i8\")\n");
  EXPECT_DOUBLE_EQ(four.operations, one.operations);
  EXPECT_LT(four.compute_cycles, one.compute_cycles);
  EXPECT_LE(four.latency_cycles, one.latency_cycles);
}

TEST(GpuTerms, ThreadsThatShareASumCombineAsATree) {
  const char* const rows =
      "workload rows\ninput A: f32[512, 1024]\noutput C[i: 512] = sum(k: 1024) A[i, k]\n";
  const char* const by_threads =
      "b0 = block(\"C\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, 256)\n"
      "reorder(l3, l2)\nbind(l0, \"blockIdx.x\")\nbind(l3, \"threadIdx.x\")\n";
  const GpuTerms tree = TermsOf(rows, by_threads);
  EXPECT_EQ(tree.threads, 256);
  EXPECT_EQ(tree.blocks, 512);
  EXPECT_DOUBLE_EQ(tree.shared_bytes, 256 * 4);
  // 8 warps publish; then 4, 2, 1, 1, … of them load twice and store.
  EXPECT_DOUBLE_EQ(tree.shared_cycles, 8 + 3 * (4 + 2 + 1 + 1 + 1 + 1 + 1 + 1));
  EXPECT_DOUBLE_EQ(tree.conflicts, 1);
  EXPECT_GT(tree.coalesced, 0.9);  // one thread stores the sum
  // 8 sub-groups share one value each. Their warps take 5 and 3 shuffles, a store and a load.
  const GpuTerms shuffles = TermsOf(rows, by_threads, /*shuffles=*/true);
  EXPECT_DOUBLE_EQ(shuffles.shared_bytes, 8 * 4);
  EXPECT_DOUBLE_EQ(shuffles.shared_cycles, 8 * (5 + 3 + 2));
  EXPECT_LT(shuffles.latency_cycles, tree.latency_cycles);
  // One thread for each row is slower.
  const GpuTerms alone = TermsOf(rows,
                                 "b0 = block(\"C\")\nl0, l1 = loops(b0)\n"
                                 "l2, l3 = split(l0, 0, 64)\nbind(l2, \"blockIdx.x\")\n"
                                 "bind(l3, \"threadIdx.x\")\n");
  EXPECT_GT(alone.cycles, 2 * tree.cycles);
}

}  // namespace
}  // namespace hone::feature
