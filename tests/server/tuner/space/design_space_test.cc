#include "server/tuner/space/design_space.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/tuner/space/chooser.h"
#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

constexpr char kOpen[] =
    "workload matmul\n"
    "input A: f32[64, 48]\n"
    "input B: f32[48, 80]\n"
    "output C[i: 64, j: 80] = sum(k: 48) A[i, k] * B[k, j]\n"
    "trace 1\n"
    "# written by hand\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1, x2 = sample_perfect_tile(l0, parts=3, max_inner=16)\n"
    "l3, l4, l5 = split(l0, x0, x1, x2)\n"
    "x3, x4 = sample_tile(l4, parts=2)\n"  // the extent of l4 is a decision
    "l6, l7 = split(l4, x3, x4)\n"
    "x5 = sample_categorical(candidates=[1, 2, 4, 8])\n"
    "l8, l9 = split(l2, 0, x5)\n"
    "unroll(l9)\n"
    "parallel(l3)\n";

std::unique_ptr<DesignSpace> Space(absl::string_view text) {
  auto space = DesignSpace::FromText(text);
  EXPECT_THAT(space, IsOk());
  return *std::move(space);
}

TEST(DesignSpace, KeepsTextAndDigestOfAGivenTrace) {
  const auto space = Space(kOpen);
  EXPECT_EQ(space->text(), kOpen);
  EXPECT_EQ(space->digest(), DigestOf(kOpen).ToHex());
  EXPECT_EQ(space->name(), "given");
  EXPECT_EQ(space->decision_count(), 6);
  EXPECT_EQ(space->workload()->name, "matmul");
}

TEST(DesignSpace, DecidedTextGivesItsDecisionsAndTheOpenSpace) {
  const auto space = Space(kOpen);
  Rng rng(5);
  const std::vector<int64_t> decisions = space->Sample(rng).value();
  const std::string concrete =
      schedule::TraceFileText(*space->workload(), space->trace(), decisions);
  std::vector<int64_t> decided;
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, DesignSpace::FromText(concrete, "mine", &decided));
  EXPECT_EQ(decided, decisions);
  EXPECT_EQ(again->name(), "mine");
  EXPECT_EQ(again->Replay(decided)->StructuralDigest(),
            space->Replay(decisions)->StructuralDigest());
  // The space of the decided text is open again.
  std::vector<int64_t> none;
  HONE_ASSERT_OK_AND_ASSIGN(const auto open, DesignSpace::FromText(again->text(), "open", &none));
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(open->digest(), again->digest());
}

TEST(DesignSpace, SamplesAreLegalDistinctAndReproducible) {
  const auto space = Space(kOpen);
  std::set<std::vector<int64_t>> seen;
  for (uint64_t i = 0; i < 200; ++i) {
    Rng rng(1, i), same(1, i);
    const std::vector<int64_t> decisions = space->Sample(rng).value();
    EXPECT_EQ(decisions, space->Sample(same).value());
    EXPECT_TRUE(space->IsLegal(decisions));
    EXPECT_EQ(decisions[0] * decisions[1] * decisions[2], 64);
    EXPECT_LE(decisions[2], 16);
    EXPECT_GE(decisions[3] * decisions[4], decisions[1]);
    EXPECT_THAT(space->Replay(decisions), IsOk());
    seen.insert(decisions);
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(DesignSpace, SitesHaveTheExtentsOfTheDecisions) {
  const auto space = Space(kOpen);
  HONE_ASSERT_OK_AND_ASSIGN(const auto sites, space->Sites({4, 8, 2, 3, 3, 2}));
  ASSERT_EQ(sites.size(), 3u);
  EXPECT_EQ(sites[0].extent, 64);
  EXPECT_EQ(sites[1].extent, 8);
  EXPECT_EQ(sites[1].begin, 3);
  EXPECT_EQ(sites[2].rows.size(), 4u);
}

TEST(DesignSpace, MutantsAreLegalAndChangeOneSite) {
  const auto space = Space(kOpen);
  int one_site = 0;
  constexpr int kTries = 300;
  for (uint64_t i = 0; i < kTries; ++i) {
    Rng rng(2, i);
    const std::vector<int64_t> parent = space->Sample(rng).value();
    Rng same = rng;
    const std::vector<int64_t> child = space->Mutate(parent, rng).value();
    EXPECT_EQ(child, space->Mutate(parent, same).value());
    EXPECT_NE(child, parent);
    EXPECT_TRUE(space->IsLegal(child));
    const bool first = !std::equal(child.begin(), child.begin() + 3, parent.begin());
    const bool second = !std::equal(child.begin() + 3, child.begin() + 5, parent.begin() + 3);
    const bool third = child[5] != parent[5];
    EXPECT_LE(second + third, 1);
    EXPECT_FALSE(first && third);
    one_site += first + second + third == 1;
    // A mutation of a perfect tile moves one prime factor between two levels.
    if (first) {
      int changed = 0;
      for (int part = 0; part < 3; ++part) changed += child[part] != parent[part];
      EXPECT_EQ(changed, 2);
    }
  }
  EXPECT_GT(one_site, kTries / 2);
}

TEST(DesignSpace, MutationsReachEveryVectorOfASmallSpace) {
  const auto space = Space(
      "workload copy\ninput A: f32[6, 5]\noutput C[i: 6, j: 5] = A[i, j]\ntrace 1\n"
      "b0 = block(\"C\")\nl0, l1 = loops(b0)\nx0, x1 = sample_perfect_tile(l0, parts=2)\nl2, l3 = "
      "split(l0, x0, x1)\n"
      "x2, x3 = sample_tile(l1, parts=2)\nl4, l5 = split(l1, x2, x3)\n");
  std::set<std::vector<int64_t>> reached;
  std::vector<int64_t> at = {6, 1, 5, 1};
  for (uint64_t i = 0; i < 2000; ++i) {
    Rng rng(3, i);
    reached.insert(at);
    at = space->Mutate(at, rng).value();
  }
  EXPECT_EQ(reached.size(), 4u * 5u);  // divisors of 6, sizes 1 to 5
}

TEST(DesignSpace, CrossoverCombinesItsParents) {
  const auto space = Space(kOpen);
  int mixed = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    Rng rng(4, i);
    const std::vector<int64_t> a = space->Sample(rng).value(), b = space->Sample(rng).value();
    Rng same = rng;
    const std::vector<int64_t> child = space->Crossover(a, b, rng).value();
    EXPECT_EQ(child, space->Crossover(a, b, same).value());
    EXPECT_TRUE(space->IsLegal(child));
    const auto from = [&](const std::vector<int64_t>& parent, int begin, int end) {
      return std::equal(child.begin() + begin, child.begin() + end, parent.begin() + begin);
    };
    EXPECT_TRUE(from(a, 0, 3) || from(b, 0, 3));
    EXPECT_TRUE(from(a, 5, 6) || from(b, 5, 6));
    mixed += child != a && child != b;
    // If the parents agree, the child equals them.
    EXPECT_EQ(space->Crossover(a, a, rng).value(), a);
  }
  EXPECT_GT(mixed, 50);
}

TEST(DesignSpace, WrongVectorsAreRefused) {
  const auto space = Space(kOpen);
  Rng rng(1);
  for (const std::vector<int64_t>& wrong :
       {std::vector<int64_t>{}, {4, 8, 2, 3, 3}, {4, 8, 2, 3, 3, 3}, {4, 8, 3, 3, 3, 2}}) {
    EXPECT_THAT(space->Mutate(wrong, rng), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(space->Sites(wrong), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(space->Replay(wrong), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_FALSE(space->IsLegal(wrong));
  }
  EXPECT_THAT(space->Crossover({1}, {2}, rng), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DesignSpace, SpaceWithoutDecisionsHasOneVector) {
  const auto space =
      DefaultCandidate(MakeWorkload("matmul m=8 n=8 k=8"), target::TargetByName("x86-avx2").value())
          .value();
  Rng rng(1);
  EXPECT_TRUE(space->Sample(rng).value().empty());
  EXPECT_THAT(space->Mutate({}, rng), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(space->Crossover({}, {}, rng).value().empty());
}

TEST(DesignSpace, ATraceThatNeverReplaysIsRefusedWithItsReason) {
  const auto space = DesignSpace::FromText(
      "workload copy\ninput A: f32[6, 5]\noutput C[i: 6, j: 5] = A[i, j]\ntrace 1\nb0 = "
      "block(\"D\")\n");
  EXPECT_THAT(space, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_NE(space.status().message().find("unknown block 'D'"), std::string::npos)
      << space.status();
}

// register_tile clamps its factors to the loops here, which means that the later extents do not
// follow from the decisions alone.
TEST(DesignSpace, FindsExtentsByReplay) {
  const auto space = Space(
      "workload matmul\n"
      "input A: f32[6, 7]\n"
      "input B: f32[7, 32]\n"
      "output C[i: 6, j: 32] = sum(k: 7) A[i, k] * B[k, j]\n"
      "trace 1\n"
      "b0 = block(\"C\")\n"
      "l0, l1, l2 = loops(b0)\n"
      "x0, x1 = sample_tile(l0, parts=2)\n"
      "l3, l4 = split(l0, x0, x1)\n"
      "l5, l6, l7 = register_tile(b0, l4, l1, l2, 4, 1, 8, 2)\n"
      "x2, x3 = sample_tile(l5, parts=2)\n"
      "l8, l9 = split(l5, x2, x3)\n");
  for (uint64_t i = 0; i < 100; ++i) {
    Rng rng(9, i);
    const std::vector<int64_t> decisions = space->Sample(rng).value();
    EXPECT_THAT(space->Replay(decisions), IsOk());
    EXPECT_TRUE(space->IsLegal(decisions));
    EXPECT_THAT(space->Replay(space->Mutate(decisions, rng).value()), IsOk());
  }
}

TEST(DesignSpace, ConstraintsHoldForEveryWayToDraw) {
  const auto given = Space(kOpen);
  const auto space =
      DesignSpace::Create(
          "narrow", given->workload(), given->trace(),
          {{"few tiles", 3, [](absl::Span<const int64_t> d) { return d[0] <= 4; }},
           {"even", 6, [](absl::Span<const int64_t> d) { return (d[4] + d[5]) % 2 == 0; }}})
          .value();
  const auto holds = [](const std::vector<int64_t>& d) {
    return d[0] <= 4 && (d[4] + d[5]) % 2 == 0;
  };
  for (uint64_t i = 0; i < 200; ++i) {
    Rng rng(6, i);
    const std::vector<int64_t> a = space->Sample(rng).value(), b = space->Sample(rng).value();
    EXPECT_TRUE(holds(a) && space->IsLegal(a));
    EXPECT_TRUE(holds(space->Mutate(a, rng).value()));
    EXPECT_TRUE(holds(space->Crossover(a, b, rng).value()));
  }
  // Decision vectors that violate a constraint can still be replayed.
  EXPECT_FALSE(space->IsLegal({64, 1, 1, 1, 1, 1}));
  EXPECT_THAT(space->Replay({64, 1, 1, 1, 1, 1}), IsOk());
}

TEST(DesignSpace, UnsatisfiableConstraintsAreReported) {
  const auto given = Space(kOpen);
  const auto space =
      DesignSpace::Create("impossible", given->workload(), given->trace(),
                          {{"nothing", 3, [](absl::Span<const int64_t>) { return false; }}});
  EXPECT_THAT(space, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_NE(space.status().message().find("constraint nothing"), std::string::npos)
      << space.status();
}

// Creates the space of kOpen with a constraint on all decisions, and counts how often it is
// checked.
absl::Status CreateWith(const std::function<bool(absl::Span<const int64_t>)>& holds,
                        int64_t* failures, int& checks) {
  const auto file = schedule::ParseTraceFile(kOpen);
  if (!file.ok()) return file.status();
  const auto counts = [&](absl::Span<const int64_t> drawn) {
    ++checks;
    return holds(drawn);
  };
  return DesignSpace::Create("limited", std::make_shared<const ir::Workload>(file->workload),
                             file->parsed.trace, {{"rare", 6, counts}}, {.failures = failures})
      .status();
}

TEST(DesignSpace, FailuresOfReplaysAreLimited) {
  const auto never = [](absl::Span<const int64_t>) { return false; };
  constexpr int kAttempts = 12;  // at the last site of a try
  int unlimited = 0, ten = 0, none = 0;
  EXPECT_FALSE(CreateWith(never, nullptr, unlimited).ok());
  EXPECT_EQ(unlimited, 200 * kAttempts);
  int64_t failures = 10;
  EXPECT_FALSE(CreateWith(never, &failures, ten).ok());
  EXPECT_EQ(ten, 10 * kAttempts);
  EXPECT_EQ(failures, 0);
  EXPECT_FALSE(CreateWith(never, &failures, none).ok());
  EXPECT_EQ(none, 4 * kAttempts);
  // A space that is found at once needs no failure.
  EXPECT_THAT(CreateWith([](absl::Span<const int64_t>) { return true; }, &failures, none), IsOk());
}

// Once a vector has replayed, the extents of others are known, and illegal ones need no replay.
TEST(DesignSpace, OnlyTheFirstLegalVectorIsLookedForByReplays) {
  const auto seldom = [](absl::Span<const int64_t> drawn) {
    return (drawn[0] + 3 * drawn[1] + 5 * drawn[3]) % 16 == 4;
  };
  int64_t failures = 1000;
  int checks = 0;
  ASSERT_THAT(CreateWith(seldom, &failures, checks), IsOk());
  EXPECT_GE(checks, 12 * (1000 - failures) + 12 * 20);
}

TEST(Chooser, RepairKeepsWhatFits) {
  Rng rng(1);
  schedule::Site tile{.kind = schedule::Site::Kind::kTile, .count = 3, .extent = 10};
  std::vector<int64_t> values = {2, 4, 5};  // 20 iterations
  Repair(tile, rng, absl::MakeSpan(values));
  EXPECT_EQ(values, (std::vector<int64_t>{1, 2, 5}));
  schedule::Site perfect{
      .kind = schedule::Site::Kind::kPerfectTile, .count = 2, .extent = 12, .max_inner = 4};
  values = {3, 8};
  Repair(perfect, rng, absl::MakeSpan(values));
  EXPECT_EQ(values, (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(perfect.IsLegal(values));
}

TEST(Chooser, MovesAreLegalAndCoverNeighbours) {
  for (const auto kind : {schedule::Site::Kind::kTile, schedule::Site::Kind::kPerfectTile}) {
    const schedule::Site site{.kind = kind, .count = 3, .extent = 60, .max_inner = 12};
    std::set<std::vector<int64_t>> seen;
    for (uint64_t i = 0; i < 300; ++i) {
      Rng rng(8, i);
      std::vector<int64_t> values = {5, 3, 4};
      Move(site, rng, absl::MakeSpan(values));
      EXPECT_TRUE(site.IsLegal(values)) << values[0] << " " << values[1] << " " << values[2];
      seen.insert(values);
    }
    EXPECT_GE(seen.size(), 5u);
  }
  const schedule::Site choice{
      .kind = schedule::Site::Kind::kChoice, .count = 2, .rows = {1, 1, 2, 1, 3, 1, 1, 2}};
  std::set<std::vector<int64_t>> seen;
  for (uint64_t i = 0; i < 200; ++i) {
    Rng rng(8, i);
    std::vector<int64_t> values = {2, 1};
    Move(choice, rng, absl::MakeSpan(values));
    EXPECT_TRUE(choice.IsLegal(values));
    seen.insert(values);
  }
  EXPECT_EQ(seen.size(), 3u);  // every other row
}

}  // namespace
}  // namespace hone::space
