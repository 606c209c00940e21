// Workloads of many parts: how they are divided, and the design spaces that are put together.

#include "server/tuner/space/part_spaces.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/schedule/trace.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

// Products with an element-wise stage after each, which adds an earlier tensor.
std::string Residuals(int products) {
  std::string text = "workload residuals\ninput X: f32[12, 12]\ninput W: f32[12, 12] constant\n";
  std::string last = "X", earlier = "X";
  for (int p = 0; p < products; ++p) {
    absl::StrAppend(&text, "P", p, "[i: 12, j: 12] = sum(k: 12) ", last, "[i, k] * W[k, j]\n",
                    p + 1 == products ? "output " : "", "S", p, "[i: 12, j: 12] = max(P", p,
                    "[i, j] * 0.25, 0.0) + ", earlier, "[i, j]\n");
    earlier = last;
    last = absl::StrCat("S", p);
  }
  return text;
}

TEST(PartsOf, DividesBeforeEachContractionAndBetweenKinds) {
  EXPECT_EQ(PartsOf(*MakeWorkload(Residuals(3))),
            (std::vector<StageRange>{{0, 2}, {2, 4}, {4, 6}}));
  const auto softmax = MakeWorkload("softmax m=8 n=8");
  EXPECT_EQ(PartsOf(*softmax),
            (std::vector<StageRange>{{0, static_cast<int>(softmax->stages.size())}}));
  // An element-wise stage belongs to the product that it prepares, or else to the one that it
  // follows; reductions of rows are apart from products.
  EXPECT_EQ(PartsOf(*MakeWorkload("workload w\n"
                                  "input X: f32[8, 8]\n"
                                  "input W: f32[8, 8]\n"
                                  "A[i: 8, j: 8] = X[i, j] * 2.0\n"
                                  "P[i: 8, j: 8] = sum(k: 8) A[i, k] * W[k, j]\n"
                                  "B[i: 8, j: 8] = max(P[i, j], 0.0)\n"
                                  "R[i: 8] = max(k: 8) B[i, k]\n"
                                  "C[i: 8, j: 8] = B[i, j] - R[i]\n"
                                  "output Q[i: 8, j: 8] = sum(k: 8) C[i, k] * W[k, j]\n")),
            (std::vector<StageRange>{{0, 3}, {3, 5}, {5, 6}}));
}

TEST(PartsOf, LeavesShortAndIndependentWorkloadsWhole) {
  const auto has_many = [](const std::string& text) {
    const auto workload = MakeWorkload(text);
    return HasManyParts(*workload, PartsOf(*workload));
  };
  EXPECT_FALSE(has_many("attention b=1 h=2 s=16 d=8"));
  EXPECT_FALSE(has_many("lstm_cell b=4 i=8 h=8"));
  EXPECT_FALSE(has_many(Residuals(4)));
  EXPECT_TRUE(has_many(Residuals(5)));
  std::string independent = "workload w\ninput X: f32[8, 8]\ninput W: f32[8, 8]\n";
  for (int p = 0; p < 5; ++p)
    absl::StrAppend(&independent, "output P", p, "[i: 8, j: 8] = sum(k: 8) X[i, k] * W[k, j]\n");
  EXPECT_FALSE(has_many(independent));
}

TEST(WorkloadOf, EqualPartsAreEqualUpToNames) {
  const auto whole = MakeWorkload(Residuals(4));
  const auto second = WorkloadOf(*whole, {4, 6}), third = WorkloadOf(*whole, {6, 8});
  ASSERT_THAT(second, IsOk());
  ASSERT_THAT(third, IsOk());
  EXPECT_EQ(second->StructuralDigest(), third->StructuralDigest());
  EXPECT_EQ(second->ToText(),
            "workload residuals\n"
            "input S1: f32[12, 12]\n"
            "input W: f32[12, 12] constant\n"
            "input S0: f32[12, 12]\n"
            "P2[i: 12, j: 12] = sum(k: 12) S1[i, k] * W[k, j]\n"
            "output S2[i: 12, j: 12] = max(P2[i, j] * 0.25, 0.0) + S0[i, j]\n");
}

class PartSpaces : public testing::Test {
 protected:
  std::vector<std::unique_ptr<DesignSpace>> Make(const Generation& generation = {}) {
    auto spaces = GenerateDesignSpaces(workload_, Avx512(), generation);
    EXPECT_THAT(spaces, IsOk());
    return spaces.ok() ? *std::move(spaces) : std::vector<std::unique_ptr<DesignSpace>>();
  }
  const std::shared_ptr<const ir::Workload> workload_ = MakeWorkload(Residuals(6));
};

TEST_F(PartSpaces, SuggestSchedulesThatComputeTheWorkload) {
  const auto inputs = SmallIntegers(*workload_, 1);
  const auto wanted = ir::Interpret(*workload_, inputs).value();
  const auto spaces = Make();
  ASSERT_FALSE(spaces.empty());
  EXPECT_LE(spaces.size(), 4u);
  for (const auto& space : spaces) {
    EXPECT_EQ(space->part_count(), 6);
    EXPECT_TRUE(space->IsLegal(space->suggested()));
    HONE_ASSERT_OK_AND_ASSIGN(const auto program, space->Replay(space->suggested()));
    EXPECT_EQ(ir::Interpret(program, inputs).value(), wanted) << space->name();
    // The stored text is read again as a space with the same decisions.
    HONE_ASSERT_OK_AND_ASSIGN(const auto stored, DesignSpace::FromText(space->text()));
    EXPECT_EQ(stored->digest(), space->digest());
    EXPECT_TRUE(stored->IsLegal(space->suggested()));
  }
}

// The sum is added to a tensor of an earlier part, which is complete before.
TEST_F(PartSpaces, FuseStagesThatAlsoReadEarlierParts) {
  const std::string text = Make()[0]->text();
  int fused = 0;
  for (size_t at = text.find("reverse_compute_at"); at != std::string::npos;
       at = text.find("reverse_compute_at", at + 1))
    ++fused;
  EXPECT_EQ(fused, 6) << text;
}

TEST_F(PartSpaces, VectorsAreThoseOfTheirParts) {
  Rng rng(3);
  for (const auto& space : Make()) {
    const std::vector<int64_t>& suggested = space->suggested();
    std::vector<int64_t> other = suggested;
    for (int draw = 0; draw < 20; ++draw) {
      HONE_ASSERT_OK_AND_ASSIGN(const auto sampled, space->Sample(rng));
      HONE_ASSERT_OK_AND_ASSIGN(const auto moved, space->Mutate(sampled, rng));
      HONE_ASSERT_OK_AND_ASSIGN(const auto crossed, space->Crossover(sampled, other, rng));
      for (const auto& vector : {sampled, moved, crossed}) {
        EXPECT_TRUE(space->IsLegal(vector));
        EXPECT_EQ(space->BrokenPrefix(vector), 0);
        EXPECT_EQ(space->Nearest(vector).value(), vector);
      }
      int changed = 0;  // parts
      for (const DesignSpace::Part& part : space->parts())
        changed +=
            !std::equal(moved.begin() + part.begin, moved.begin() + part.begin + part.count(),
                        sampled.begin() + part.begin);
      EXPECT_EQ(changed, 1);
      other = moved;
    }
    // The sites are those of a replay.
    schedule::GivenDecider decider(suggested);
    const auto replayed = schedule::ReplayWith(workload_, space->trace(), decider).value();
    const auto sites = space->Sites(suggested).value();
    ASSERT_EQ(sites.size(), replayed.sites.size());
    for (size_t s = 0; s < sites.size(); ++s) {
      EXPECT_EQ(sites[s].begin, replayed.sites[s].begin);
      EXPECT_EQ(sites[s].extent, replayed.sites[s].extent);
      EXPECT_EQ(sites[s].rows, replayed.sites[s].rows);
    }
    std::vector<int64_t> illegal = suggested;
    illegal[0] = 1000;
    EXPECT_FALSE(space->IsLegal(illegal));
  }
}

TEST_F(PartSpaces, TakeTheBestSpaceOfEachPartFirst) {
  // The estimate prefers schedules whose tiles reduce in one piece.
  const Generation generation{.score = [](const ir::Program& program) {
    return absl::StrContains(program.ToText(), "prefetch=4") ? 1.0 : 2.0;
  }};
  const auto spaces = Make(generation);
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, spaces[0]->Replay(spaces[0]->suggested()));
  EXPECT_FALSE(absl::StrContains(program.ToText(), "prefetch=4")) << program.ToText();
}

TEST_F(PartSpaces, EndWhenTheCheckSaysSo) {
  int calls = 0;
  const Generation generation{.check = [&] {
    return ++calls < 20 ? absl::OkStatus() : absl::DeadlineExceededError("late");
  }};
  EXPECT_THAT(GenerateDesignSpaces(workload_, Avx512(), generation),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(calls, 20);
  calls = 0;
  EXPECT_THAT(GenerateDesignSpaces(MakeWorkload("mlp m=16 k=16 h=16"), Avx512(), generation),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(calls, 20);
}

// A replay that is continued gives what one replay of the whole trace gives.
TEST(ContinueReplay, GivesTheWholeReplay) {
  const auto workload = MakeWorkload("dense m=24 n=32 k=16");
  HONE_ASSERT_OK_AND_ASSIGN(const auto spaces, GenerateDesignSpaces(workload, Avx512()));
  for (const auto& space : spaces) {
    Rng rng(5);
    const std::vector<int64_t> decisions = space->Sample(rng).value();
    schedule::GivenDecider decider(decisions);
    schedule::PartialReplay partial = schedule::StartReplay(workload);
    schedule::Trace prefix = space->trace();
    for (size_t count = 0; count <= space->trace().instructions.size(); count += 3) {
      prefix.instructions.assign(space->trace().instructions.begin(),
                                 space->trace().instructions.begin() + count);
      schedule::PartialReplay copy = partial;
      ASSERT_THAT(schedule::ContinueReplay(prefix, decider, copy), IsOk());
      partial = std::move(copy);
    }
    ASSERT_THAT(schedule::ContinueReplay(space->trace(), decider, partial), IsOk());
    EXPECT_EQ(partial.replayed.program.ToText(), space->Replay(decisions)->ToText());
  }
}

// Vectors that are replayed together give what each gives alone, also if some of them are illegal.
TEST(ReplayAll, GivesTheReplayOfEachVector) {
  for (const char* op : {"dense m=24 n=32 k=16", "softmax m=24 n=100"}) {
    const auto workload = MakeWorkload(op);
    HONE_ASSERT_OK_AND_ASSIGN(const auto spaces, GenerateDesignSpaces(workload, Avx512()));
    for (const auto& space : spaces) {
      Rng rng(5);
      std::vector<std::vector<int64_t>> vectors = {space->Sample(rng).value()};
      for (int i = 0; i < 24; ++i) {
        vectors.push_back(vectors[rng.Below(vectors.size())]);  // the same again
        const auto near = space->Mutate(vectors.back(), rng);   // fails for an illegal one
        if (near.ok()) vectors.push_back(*near);
        if (i % 6 == 0 && !vectors.back().empty())
          vectors.back()[rng.Below(vectors.back().size())] = 1 << 20;
      }
      std::sort(vectors.begin(), vectors.end());
      const std::vector<absl::Span<const int64_t>> sorted(vectors.begin(), vectors.end());
      size_t next = 0;
      space->ReplayAll(
          sorted, [&](size_t position, const absl::Status& status, const ir::Program& together) {
            EXPECT_EQ(position, next++);
            const absl::StatusOr<ir::Program> alone = space->Replay(vectors[position]);
            ASSERT_EQ(status, alone.status());
            if (alone.ok()) {
              EXPECT_EQ(together.ToText(), alone->ToText());
            }
          });
      EXPECT_EQ(next, vectors.size());
    }
  }
}

}  // namespace
}  // namespace hone::space
