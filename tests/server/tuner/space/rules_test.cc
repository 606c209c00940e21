// Runs all rules on every workload listed here. The resulting spaces must keep the contracts of
// generate.h, rule.h and design_space.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/ir/interpreter.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/rule.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

std::vector<std::unique_ptr<DesignSpace>> Generate(absl::string_view text,
                                                   const target::Target& target) {
  auto spaces = GenerateDesignSpaces(MakeWorkload(text), target);
  EXPECT_THAT(spaces, IsOk()) << text;
  if (!spaces.ok()) return {};
  return *std::move(spaces);
}

std::set<std::string> Names(const std::vector<std::unique_ptr<DesignSpace>>& spaces) {
  std::set<std::string> names;
  for (const auto& space : spaces) EXPECT_TRUE(names.insert(space->name()).second) << space->name();
  return names;
}

// A producer to inline, and a consumer to fuse.
constexpr char kChain[] =
    "workload chain\n"
    "input A: f32[18, 10]\n"
    "input B: f32[10, 50] constant\n"
    "input bias: f32[50]\n"
    "P[i: 18, k: 10] = A[i, k] + 1.0\n"
    "C[i: 18, j: 50] = sum(k: 10) P[i, k] * B[k, j]\n"
    "E[i: 18, j: 50] = C[i, j] + bias[j]\n"
    "output D[i: 18, j: 50] = max(E[i, j], 0.0)\n";

// Weights of 4 bits, with a scale and a zero point for each block of a column.
constexpr char kBlocksOfWeights[] =
    "workload blocks_of_weights\n"
    "input A: f32[3, 32]\n"
    "input W: u4[32, 40] constant\n"
    "input S: f32[4, 40] constant\n"
    "input Z: u4[4, 40] constant\n"
    "output C[i: 3, j: 40] = sum(k: 32) A[i, k] * (f32(i32(W[k, j]) - i32(Z[k / 8, j])) * S[k / 8, "
    "j])\n";

// Odd and prime sizes, sizes of one, and sizes smaller than a vector.
// Joins three planes to pixels.
constexpr char kPlanes[] =
    "workload planes\ninput X: u8[3, 5, 70]\n"
    "output Y[h: 5, k: 210] = (X[k % 3, h, k / 3 - 2] where 0 <= k - 6 else 0)\n";

const char* const kSmall[] = {
    kPlanes,
    "matmul m=1 n=1 k=1",
    "matmul m=17 n=13 k=7",
    "matmul m=33 n=129 k=7",
    "matmul m=34 n=40 k=21",
    "matmul m=1 n=40 k=9",
    "matmul m=40 n=1 k=9",
    "batch_matmul b=3 m=10 n=37 k=11",
    "batch_matmul b=2 m=34 n=40 k=8",
    "conv2d n=2 h=5 w=9 ci=3 co=37 k=3 s=1 p=1",
    "conv2d n=1 h=9 w=9 ci=4 co=33 k=3 s=2 p=1",
    "conv2d n=1 h=8 w=8 ci=8 co=16 k=1 s=1 p=0",
    "conv2d n=1 h=6 w=11 ci=3 co=20 k=5 s=2 p=2",
    // Channels first: the output is transposed at the tile.
    "conv2d_nchw n=2 h=5 w=9 ci=3 co=37 k=3 s=1 p=1",
    "conv2d_nchw n=1 h=7 w=7 ci=8 co=40 k=1 s=1 p=0",
    "conv2d_nchw n=1 h=9 w=7 ci=6 co=40 k=3 s=2 p=1 groups=2",
    // Groups of channels, also of odd sizes, with both layouts.
    "conv2d_nchw n=2 h=5 w=6 ci=10 co=14 k=1 groups=2",
    "conv2d_nchw n=1 h=7 w=7 ci=12 co=51 k=1 groups=3",
    "conv2d_nchw n=1 h=6 w=7 ci=16 co=16 k=3 s=1 p=1 groups=2",
    "conv2d_nchw n=1 h=9 w=9 ci=6 co=6 k=3 s=2 p=1 groups=6",
    "conv2d_nchw n=2 h=7 w=20 ci=3 co=3 k=3 s=1 p=1 groups=3",
    "conv2d_nchw n=1 h=14 w=14 ci=4 co=4 k=5 s=1 p=2 groups=4",
    "conv2d n=1 h=5 w=6 ci=10 co=34 k=1 groups=2",
    "conv2d n=2 h=6 w=7 ci=48 co=48 k=3 s=2 p=1 groups=2",
    "conv2d_bn_relu n=1 h=6 w=6 ci=9 co=24 k=3 s=1 p=1 groups=3",
    // A unit of ShuffleNet: the result of a grouped convolution is shuffled, or its image is.
    "workload shuffled_result\n"
    "input X: f32[1, 12, 5, 7]\n"
    "input W: f32[20, 3, 1, 1] constant\n"
    "input B: f32[20] constant\n"
    "C[n: 1, c: 20, h: 5, w: 7] = sum(k: 3, r: 1, s: 1) X[n, k + c / 5 * 3, h + r, w + s] * W[c, "
    "k, r, s]\n"
    "D[n: 1, c: 20, h: 5, w: 7] = max(C[n, c, h, w] + B[c], 0.0)\n"
    "output Y[n: 1, c: 20, h: 5, w: 7] = D[n, c % 4 * 5 + c / 4, h, w]\n",
    "workload shuffled_image\n"
    "input X: f32[1, 5, 7, 20]\n"
    "input W: f32[1, 1, 5, 36] constant\n"
    "input B: f32[36] constant\n"
    "input R: f32[1, 5, 7, 36]\n"
    "C[n: 1, h: 5, w: 7, c: 36] = sum(r: 1, s: 1, k: 5) X[n, h + r, w + s, (k + c / 9 * 5) % 4 * 5 "
    "+ (k + c / 9 * 5) / 4] * W[r, s, k, c]\n"
    "D[n: 1, h: 5, w: 7, c: 36] = C[n, h, w, c] + B[c]\n"
    "output Y[n: 1, h: 5, w: 7, c: 36] = max(D[n, h, w, c] + R[n, h, w, c], 0.0)\n",
    "workload conv_nchw_relu\n"
    "input X: f32[1, 3, 6, 7]\n"
    "input W: f32[20, 3, 3, 3] constant\n"
    "input bias: f32[20]\n"
    "C[n: 1, co: 20, h: 6, w: 7] = sum(ci: 3, r: 3, s: 3 where 0 <= h + r - 1 < 6, 0 <= w + s - 1 "
    "< 7)\n"
    "  X[n, ci, h + r - 1, w + s - 1] * W[co, ci, r, s]\n"
    "output Y[n: 1, co: 20, h: 6, w: 7] = max(C[n, co, h, w] + bias[co], 0.0)\n",
    // A consumer that exchanges the outer axes.
    "workload heads\n"
    "input A: f32[3, 18, 10]\n"
    "input B: f32[3, 10, 50] constant\n"
    "C[h: 3, i: 18, j: 50] = sum(k: 10) A[h, i, k] * B[h, k, j]\n"
    "output D[i: 18, h: 3, j: 50] = max(C[h, i, j], 0.0)\n",
    "dense_relu m=19 n=70 k=9",
    "dense_relu m=36 n=128 k=5",
    // B is transposed: vectors are contiguous only after packing.
    kTransposedWeights,
    kChain,
    // A padded producer, whose guarded values are not inlined into the reduction, and a consumer
    // with guarded values, which is not moved to the tile.
    "workload padded\n"
    "input A: f32[16, 10]\n"
    "input B: f32[10, 50] constant\n"
    "P[i: 18, k: 10] = (A[i - 1, k] where 0 <= i - 1 < 16 else 0.5)\n"
    "C[i: 18, j: 50] = sum(k: 10) P[i, k] * B[k, j]\n"
    "output D[i: 18, j: 50] = (C[i, j] where i < 9 else 0.0)\n",
    // Rows of a table.
    "workload embedding\n"
    "input T: f32[30, 20] constant\n"
    "input I: i32[9] < 30\n"
    "E[i: 9, k: 20] = T[at(I[i]), k] * 2.0\n"
    "output S[i: 9] = sum(k: 20) E[i, k] * T[at(I[i]), k]\n",
    kBlocksOfWeights,
    // Two contractions.
    "workload twice\n"
    "input A: f32[12, 9]\n"
    "input B: f32[9, 40]\n"
    "input V: f32[40, 20]\n"
    "C[i: 12, j: 40] = sum(k: 9) A[i, k] * B[k, j]\n"
    "output D[i: 12, j: 20] = sum(k: 40) C[i, k] * V[k, j]\n",
    // No contraction.
    "workload add\n"
    "input A: f32[7, 90]\n"
    "input B: f32[7, 90]\n"
    "output C[i: 7, j: 90] = A[i, j] + B[i, j]\n",
    "workload short\n"
    "input A: f32[5]\n"
    "output C[i: 5] = A[i] * 2.0\n",
    "workload row_max\n"
    "input A: f32[21, 30]\n"
    "output C[i: 21] = max(k: 30) A[i, k]\n",
    "workload total\n"
    "input A: f32[30]\n"
    "output C[i: 1] = sum(k: 30) A[k]\n",
    // Depthwise: both operands have the vector axis.
    "workload depthwise\n"
    "input X: f32[1, 8, 9, 20]\n"
    "input W: f32[3, 3, 20] constant\n"
    "output Y[n: 1, h: 8, w: 9, c: 20] = sum(r: 3, s: 3 where 0 <= h + r - 1 < 8, 0 <= w + s - 1 < "
    "9)\n"
    "  X[n, h + r - 1, w + s - 1, c] * W[r, s, c]\n",
    "depthwise_conv2d n=2 h=7 w=14 c=40 k=3 s=2 p=1",
    "depthwise_conv2d n=1 h=3 w=1 c=64 k=3 s=1 p=1",
    "max_pool2d n=1 h=9 w=8 c=33 k=3 s=2 p=1",
    "avg_pool2d n=1 h=8 w=8 c=64 k=2 s=2 p=0",
    "global_avg_pool n=2 h=4 w=4 c=40",
    // Column sums with an epilogue.
    "workload column_sums\n"
    "input A: f32[50, 70]\n"
    "S[j: 70] = sum(i: 50) A[i, j]\n"
    "output C[j: 70] = max(S[j], 0.0)\n",
    // The stages of softmax in integer arithmetic.
    "workload rows\n"
    "input X: f32[12, 96]\n"
    "M[i: 12] = max(k: 96) X[i, k]\n"
    "E[i: 12, j: 96] = X[i, j] - M[i]\n"
    "S[i: 12] = sum(k: 96) E[i, k]\n"
    "output Y[i: 12, j: 96] = E[i, j] * S[i]\n",
    // Rows along two axes whose length is not a multiple of the vector size.
    "workload uneven_rows\n"
    "input X: f32[3, 5, 37]\n"
    "S[b: 3, i: 5] = sum(k: 37) X[b, i, k]\n"
    "Q[b: 3, i: 5] = sum(k: 37) (X[b, i, k] - S[b, i]) * (X[b, i, k] - S[b, i])\n"
    "output Y[b: 3, i: 5, j: 37] = X[b, i, j] * S[b, i] + Q[b, i]\n",
    // Rows that are reduced along two axes, and a workload with a single row.
    "workload matrices\n"
    "input X: f32[2, 6, 48]\n"
    "S[b: 2] = sum(i: 6, j: 48) X[b, i, j] * X[b, i, j]\n"
    "output Y[b: 2] = max(S[b], 1.0)\n",
    "workload long_row\n"
    "input X: f32[1, 3000]\n"
    "M[b: 1] = max(j: 3000) X[b, j]\n"
    "output Y[b: 1, j: 3000] = X[b, j] - M[b]\n",
    // The position of the largest element of each row or column, and of a long row.
    "argmax m=37 n=90",
    "argmax m=40 n=21 axis=0",
    "argmax m=1 n=3000",
    "workload normalized\n"
    "input X: f32[12, 50]\n"
    "S[i: 12] = sum(k: 50) X[i, k]\n"
    "(V, I)[i: 12] = argmin(k: 50) (X[i, k] - S[i], i32(index(k)))\n"
    "output Y[i: 12] = V[i] + f32(I[i])\n",
    // Rows of a table that are added up.
    "workload bag\n"
    "input T: f32[50, 40]\n"
    "input N: i32[9, 30] < 50\n"
    "output B[i: 9, j: 40] = sum(k: 30) T[at(N[i, k]), j]\n",
    "matmul m=300 n=1 k=80",
    "transpose_batch_matmul b=1 s=10 h=3 d=16",
    // Vectors run across the rows of an operand, which is packed by transposition.
    "workload transposed\n"
    "input A: f32[34, 2, 12]\n"
    "input B: f32[130, 2, 12]\n"
    "output C[h: 2, i: 34, j: 130] = sum(d: 12) A[i, h, d] * B[j, h, d]\n",
    "conv1d n=1 l=9 ci=8 co=33 k=5 s=1 p=2",
    "conv3d n=1 d=3 h=5 w=5 ci=4 co=20 k=3 s=1 p=1",
    "conv2d n=1 h=7 w=7 ci=8 co=32 k=3 s=1 p=1 groups=4",
    "conv2d_transpose n=1 h=3 w=3 ci=8 co=3 k=4 s=2 p=1",
    // A producer that is too expensive to inline.
    "workload costly\n"
    "input A: f32[18, 20]\n"
    "input S: f32[20]\n"
    "input B: f32[20, 50] constant\n"
    "P[i: 18, k: 20] = A[i, k] * S[k]\n"
    "output C[i: 18, j: 50] = sum(k: 20) P[i, k] * B[k, j]\n",
    // Tile transforms with and without padding; a few results of long sums with a consumer.
    "winograd_conv2d n=1 h=9 w=30 ci=5 co=20",
    "winograd_conv2d n=2 h=10 w=10 ci=17 co=16",
    // One channel: the products are sums of one term, like a guarded copy.
    "winograd_conv2d n=1 h=30 w=30 ci=1 co=16",
    "matmul m=1 n=64 k=4096",
    "workload long_sums\n"
    "input A: f32[4, 3000]\n"
    "input B: f32[3000, 20] constant\n"
    "C[i: 4, j: 20] = sum(k: 3000) A[i, k] * B[k, j]\n"
    "output D[i: 4, j: 20] = max(C[i, j], 0.0)\n",
    "conv2d n=2 h=5 w=7 ci=9 co=36 k=1 s=2 p=0",
    "conv2d_bn_relu n=1 h=5 w=6 ci=8 co=20 k=1 s=1 p=0",
    // Rows along two axes.
    "workload rows_of_a_batch\n"
    "input A: f32[3, 5, 12]\n"
    "input B: f32[12, 40] constant\n"
    "output C[b: 3, i: 5, j: 40] = sum(k: 12) A[b, i, k] * B[k, j]\n",
    // The stages of attention in integer arithmetic.
    "workload weighted_rows\n"
    "input Q: f32[2, 19, 20]\n"
    "input K: f32[2, 37, 20]\n"
    "input V: f32[2, 37, 24]\n"
    "Scores[b: 2, i: 19, j: 37] = sum(d: 20) Q[b, i, d] * K[b, j, d]\n"
    "Max[b: 2, i: 19] = max(j: 37) Scores[b, i, j]\n"
    "E[b: 2, i: 19, j: 37] = Scores[b, i, j] - Max[b, i]\n"
    "Sum[b: 2, i: 19] = sum(j: 37) E[b, i, j]\n"
    "Values[b: 2, i: 19, d: 24] = sum(j: 37) E[b, i, j] * V[b, j, d]\n"
    "output Y[b: 2, i: 19, d: 24] = Values[b, i, d] + Sum[b, i]\n",
    // Two dense layers that end in a contraction, and three that end in a consumer.
    "workload two_layers\n"
    "input X: f32[26, 9]\n"
    "input W1: f32[9, 40] constant\n"
    "input W2: f32[40, 33] constant\n"
    "C1[i: 26, j: 40] = sum(k: 9) X[i, k] * W1[k, j]\n"
    "H[i: 26, j: 40] = C1[i, j] * max(C1[i, j], 0.0)\n"
    "output C2[i: 26, j: 33] = sum(k: 40) H[i, k] * W2[k, j]\n",
    "workload three_layers\n"
    "input X: f32[3, 7, 9]\n"
    "input W1: f32[9, 16]\n"
    "input W2: f32[16, 21]\n"
    "input W3: f32[18, 21]\n"
    "C1[b: 3, i: 7, j: 16] = sum(k: 9) X[b, i, k] * W1[k, j]\n"
    "C2[b: 3, i: 7, j: 21] = sum(k: 16) C1[b, i, k] * W2[k, j]\n"
    "C3[b: 3, i: 7, j: 18] = sum(k: 21) C2[b, i, k] * W3[j, k]\n"
    "output Y[b: 3, i: 7, j: 18] = C3[b, i, j] + 1.0\n",
};

class SmallWorkload : public testing::TestWithParam<const char*> {};

// The primitives and the rules preserve the meaning of the workload, bit for bit on integers.
TEST_P(SmallWorkload, EveryCandidateComputesTheWorkload) {
  constexpr int kCandidates = 4;
  for (const target::Target& target : {Avx512(), Avx2()}) {
    const auto workload = MakeWorkload(GetParam());
    const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
    const std::vector<ir::Values> wanted = ir::Interpret(*workload, inputs).value();
    auto spaces = Generate(GetParam(), target);
    HONE_ASSERT_OK_AND_ASSIGN(auto fallback, DefaultCandidate(workload, target));
    EXPECT_EQ(fallback->decision_count(), 0);
    spaces.push_back(std::move(fallback));
    for (const auto& space : spaces) {
      std::vector<int64_t> decisions;
      for (uint64_t i = 0; i < kCandidates; ++i) {
        Rng rng(11, i);
        // Half of the candidates are mutants of the previous one.
        auto drawn = i % 2 == 0 ? space->Sample(rng) : space->Mutate(decisions, rng);
        if (i % 2 == 1 && absl::IsResourceExhausted(drawn.status())) continue;
        ASSERT_THAT(drawn, IsOk()) << space->name();
        decisions = *drawn;
        auto program = space->Replay(decisions);
        if (!program.ok()) continue;  // FewCandidatesAreInvalid counts these
        auto computed = ir::Interpret(*program, inputs);
        ASSERT_THAT(computed, IsOk()) << program->ToText();
        ASSERT_EQ(*computed, wanted)
            << schedule::TraceFileText(*space->workload(), space->trace(), decisions)
            << program->ToText();
      }
    }
  }
}

TEST_P(SmallWorkload, FewCandidatesAreInvalid) {
  constexpr int kCandidates = 50;
  int tried = 0, invalid = 0;
  absl::Status last;
  for (const auto& space : Generate(GetParam(), Avx512())) {
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(13, i);
      auto drawn = space->Sample(rng);
      ASSERT_THAT(drawn, IsOk()) << space->name();
      EXPECT_TRUE(space->IsLegal(*drawn)) << space->name();
      auto program = space->Replay(*drawn);
      ++tried;
      if (program.ok()) continue;
      ++invalid;
      last = program.status();
    }
  }
  EXPECT_LE(invalid * 50, tried) << last;
}

TEST_P(SmallWorkload, TheSameArgumentsGiveTheSameSpaces) {
  const auto first = Generate(GetParam(), Avx512());
  const auto second = Generate(GetParam(), Avx512());
  ASSERT_EQ(first.size(), second.size());
  ASSERT_FALSE(first.empty());
  std::set<std::string> digests;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i]->text(), second[i]->text());
    EXPECT_EQ(first[i]->digest(), second[i]->digest());
    EXPECT_TRUE(digests.insert(first[i]->digest()).second);
  }
  Names(first);
}

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = absl::StrCat(info.index, "_");
  for (char c : std::string(info.param).substr(0, 40)) {
    if (c == '\n') break;
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, SmallWorkload, testing::ValuesIn(kSmall), NameOf);

class LargeWorkload : public testing::TestWithParam<const char*> {};

TEST_P(LargeWorkload, CandidatesAreValidAndDiffer) {
  constexpr int kCandidates = 200;
  int tried = 0, invalid = 0, repeated = 0;
  absl::Status last;
  for (const auto& space : Generate(GetParam(), Avx512())) {
    std::set<Digest> programs;
    std::set<std::vector<int64_t>> known;
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(17, i);
      auto drawn = space->Sample(rng);
      ASSERT_THAT(drawn, IsOk()) << space->name();
      if (!known.insert(*drawn).second) continue;  // already drawn from this small space
      auto program = space->Replay(*drawn);
      ++tried;
      if (!program.ok()) {
        ++invalid;
        last = program.status();
      } else {
        repeated += !programs.insert(program->StructuralDigest()).second;
      }
    }
  }
  EXPECT_LE(invalid * 50, tried) << last;
  EXPECT_LE(repeated * 100, tried);
}

INSTANTIATE_TEST_SUITE_P(All, LargeWorkload,
                         testing::Values("matmul m=1024 n=1024 k=1024",
                                         "matmul m=1009 n=997 k=1013",
                                         "batch_matmul b=8 m=128 n=128 k=64",
                                         "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
                                         "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1",
                                         "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1",
                                         "max_pool2d n=1 h=112 w=112 c=64 k=3 s=2 p=1",
                                         "softmax m=1024 n=1024", "layer_norm m=128 n=768",
                                         "norm b=1 m=1024 n=1024", "dense_relu m=512 n=512 k=512",
                                         "mlp m=512 k=256 h=1024 n=256"),
                         NameOf);

TEST(Rules, NamesAreSortedByTheirUseAndUnique) {
  std::set<absl::string_view> names;
  for (const Rule& rule : Rules()) EXPECT_TRUE(names.insert(rule.name).second);
  EXPECT_EQ(Rules().front().name, "wide_accumulator");
  EXPECT_EQ(Rules().back().name, "parallel_vectorize_unroll");
}

TEST(Rules, ReductionsOfRowsShareABlockOfRows) {
  for (const char* text : {"softmax m=128 n=768", "layer_norm m=128 n=768"}) {
    bool found = false;
    for (const auto& space : Generate(text, Avx512())) {
      if (space->name() != "rows") continue;
      found = true;
      Rng rng(1);
      const ir::Program program = space->Replay(space->Sample(rng).value()).value();
      EXPECT_EQ(program.LoopsAbove(program.FindBlock("Sum"))[0],
                program.LoopsAbove(program.FindBlock("Y"))[0])
          << program.ToText();
    }
    EXPECT_TRUE(found) << text;
  }
}

TEST(Rules, MatmulOffersEveryPacking) {
  const std::set<std::string> names = Names(Generate("matmul m=1024 n=1024 k=1024", Avx512()));
  for (const char* name : {"tile_ij_ij", "tile_ij_ji_packB", "tile_ji_ij_packAB",
                           "tile_ij_ji_packAB_at", "tile_ij_ij_cache"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Rules, OnlyConstantWeightsArePacked) {
  for (const auto& space : Generate("conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1", Avx512())) {
    EXPECT_EQ(space->text().find("\"X\""), std::string::npos) << space->text();
    Rng rng(1);
    const ir::Program program = space->Replay(space->Sample(rng).value()).value();
    const bool packed = space->name().find("packW") != std::string::npos;
    EXPECT_EQ(program.kernels.size(), packed ? 2u : 1u) << space->name();
  }
}

// Scales and zero points are read in the same order as the weights.
TEST(Rules, PanelsOfWeightsHavePanelsOfScales) {
  int tiled = 0;
  for (const auto& space : Generate(kBlocksOfWeights, Avx2())) {
    if (space->name().find("tile") == std::string::npos) continue;
    ++tiled;
    for (const char* input : {"\"W\"", "\"S\"", "\"Z\""}) {
      EXPECT_NE(space->text().find(input), std::string::npos)
          << space->name() << " lacks " << input;
    }
  }
  EXPECT_GT(tiled, 0);
}

// No measurement of a task alone would choose this prefetch.
TEST(Rules, WeightsThatOneRowUnpacksOnceArePrefetched) {
  const auto finds = [](int rows, absl::string_view dtype, absl::string_view instruction) {
    const std::string text =
        absl::StrCat("workload weights\ninput A: f32[", rows, ", 256]\ninput W: ", dtype,
                     "[256, 512] constant\noutput C[i: ", rows,
                     ", j: 512] = sum(k: 256) A[i, k] * f32(W[k, j])\n");
    return absl::c_any_of(Generate(text, Avx512()), [&](const auto& space) {
      return absl::StrContains(space->text(), instruction);
    });
  };
  for (const char* dtype : {"i4", "u8"}) {
    EXPECT_TRUE(finds(1, dtype, "\"prefetch\", 16)")) << dtype;
    EXPECT_TRUE(finds(1, dtype, "sample_register_tile(candidates=[1, 2, ")) << dtype;
    EXPECT_FALSE(finds(8, dtype, "\"prefetch\", 16)")) << dtype;
  }
  EXPECT_FALSE(finds(1, "f32", "\"prefetch\", 16)"));
}

// A vector of a copy that joins planes reads one of them, instead of gathering from all.
TEST(Rules, CopiesOfPlanesReadOnePlaneAtATime) {
  const auto loops_of = [](absl::string_view workload) {
    std::string text;
    for (const auto& space : Generate(workload, Avx512())) {
      Rng rng(1);
      absl::StrAppend(&text, space->Replay(space->Sample(rng).value()).value().ToText());
    }
    return text;
  };
  EXPECT_THAT(loops_of(kPlanes), testing::HasSubstr("unrolled k_1 in 3"));
  // Neither elements that are gathered, nor those of many planes, nor planes in the order of
  // memory.
  for (const auto& [extent, text] :
       {std::pair{3, "workload wide\ninput X: f32[3, 100]\noutput Y[k: 300] = X[k % 3, k / 3]\n"},
        {16, "workload many\ninput X: u8[16, 100]\noutput Y[k: 1600] = X[k % 16, k / 16]\n"},
        {3, "workload flat\ninput X: u8[100, 3]\noutput Y[k: 300] = X[k / 3, k % 3]\n"}}) {
    EXPECT_THAT(loops_of(text),
                testing::Not(testing::HasSubstr(absl::StrCat("unrolled k_1 in ", extent))))
        << text;
  }
}

TEST(Rules, PointwiseConvolutionTilesAllPixels) {
  EXPECT_TRUE(Names(Generate("conv2d n=1 h=14 w=14 ci=64 co=64 k=1 s=1 p=0", Avx512()))
                  .contains("tile_hwco_hwco_packW"));
  EXPECT_TRUE(Names(Generate("conv2d n=2 h=14 w=14 ci=64 co=64 k=1 s=2 p=0", Avx512()))
                  .contains("tile_nhwco_conhw_packW"));
  for (const char* text : {"conv2d n=1 h=14 w=14 ci=64 co=64 k=3 s=1 p=1",
                           "conv2d_bn_relu n=1 h=14 w=14 ci=64 co=64 k=1 s=1 p=0"}) {
    for (const std::string& name : Names(Generate(text, Avx512())))
      EXPECT_EQ(name.find("hw"), std::string::npos) << text << ": " << name;
  }
}

TEST(Rules, AConsumerIsFusedAndAProducerInlined) {
  for (const auto& space : Generate(kChain, Avx512())) {
    Rng rng(1);
    const ir::Program program = space->Replay(space->Sample(rng).value()).value();
    EXPECT_EQ(program.FindBlock("P"), ir::kNoNode);
    EXPECT_EQ(program.FindBlock("E"), ir::kNoNode);
    // The consumer shares the outermost loop of the tile.
    EXPECT_EQ(program.LoopsAbove(program.FindBlock("D"))[0],
              program.LoopsAbove(program.FindBlock("C"))[0]);
  }
}

TEST(Rules, ProducerLocationIsADecision) {
  constexpr char kCostly[] =
      "workload costly\n"
      "input A: f32[64, 128]\n"
      "input S: f32[128]\n"
      "input B: f32[128, 256] constant\n"
      "P[i: 64, k: 128] = A[i, k] * S[k]\n"
      "output C[i: 64, j: 256] = sum(k: 128) P[i, k] * B[k, j]\n";
  std::set<size_t> depths;
  bool stays = false;
  for (const auto& space : Generate(kCostly, Avx512())) {
    for (uint64_t i = 0; i < 40; ++i) {
      Rng rng(7, i);
      const ir::Program program = space->Replay(space->Sample(rng).value()).value();
      const std::vector<ir::NodeId> producer = program.LoopsAbove(program.FindBlock("P")),
                                    consumer = program.LoopsAbove(program.FindBlock("C"));
      size_t shared = 0;
      while (shared < producer.size() && producer[shared] == consumer[shared]) ++shared;
      const bool moved = space->name().find("at_P") != std::string::npos;
      EXPECT_EQ(shared > 0, moved) << space->name() << program.ToText();
      EXPECT_EQ(program.node(producer.back()).loop, ir::LoopKind::kVectorized);
      if (moved) depths.insert(shared);
      stays |= !moved;
    }
  }
  EXPECT_TRUE(stays);
  EXPECT_GE(depths.size(), 3u);
}

TEST(Rules, EveryRegisterTileFitsTheRegisters) {
  for (const target::Target& target : {Avx512(), Avx2()}) {
    const TileLimits limits = TileLimits::Of(target, ir::DType::kF32);
    const std::vector<int64_t> tiles = RegisterTiles(limits, 1024, 1024);
    ASSERT_FALSE(tiles.empty());
    for (size_t t = 0; t < tiles.size(); t += 2) {
      EXPECT_LE(tiles[t] * tiles[t + 1] + tiles[t + 1] + 1, target.vector_registers);
      EXPECT_GE(tiles[t] * tiles[t + 1], 8);
    }
  }
  // The tile shapes that BLAS libraries use are included.
  const auto has = [](const target::Target& target, int64_t rows, int64_t vectors) {
    const std::vector<int64_t> tiles =
        RegisterTiles(TileLimits::Of(target, ir::DType::kF32), 1024, 1024);
    for (size_t t = 0; t < tiles.size(); t += 2) {
      if (tiles[t] == rows && tiles[t + 1] == vectors) return true;
    }
    return false;
  };
  EXPECT_TRUE(has(Avx512(), 14, 2));
  EXPECT_TRUE(has(Avx512(), 9, 3));
  EXPECT_TRUE(has(Avx512(), 8, 3));
  EXPECT_TRUE(has(Avx2(), 6, 2));
  EXPECT_TRUE(has(Avx2(), 4, 3));
  // An operand in two registers: five rows of two vectors, two parts of each vector and of a
  // broadcast take all of the 16 registers.
  TileLimits parts = TileLimits::Of(Avx2(), ir::DType::kI32);
  parts.registers_per_operand = 2;
  EXPECT_EQ(RegisterTiles(parts, 1024, 1024),
            (std::vector<int64_t>{8, 1, 9, 1, 10, 1, 11, 1, 12, 1, 4, 2, 5, 2}));
  // For small shapes, the largest tile that fits remains.
  EXPECT_EQ(RegisterTiles(TileLimits::Of(Avx512(), ir::DType::kF32), 3, 5),
            (std::vector<int64_t>{3, 1}));
}

TEST(DefaultCandidate, IsUntiledParallelAndVectorized) {
  HONE_ASSERT_OK_AND_ASSIGN(auto space,
                            DefaultCandidate(MakeWorkload("matmul m=64 n=64 k=64"), Avx512()));
  const std::string text = space->Replay({}).value().ToText();
  EXPECT_NE(text.find("parallel i.j_0 in 256"), std::string::npos) << text;
  EXPECT_NE(text.find("vectorized j_1 in 16"), std::string::npos) << text;
}

TEST(GenerateDesignSpaces, RefusesAnInvalidWorkload) {
  ir::Workload empty;
  EXPECT_THAT(GenerateDesignSpaces(std::make_shared<const ir::Workload>(empty), Avx512()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::space
