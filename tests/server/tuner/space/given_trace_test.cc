#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/ir/workload_parser.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/maker.h"
#include "tests/status.h"

namespace hone::space {
namespace {

constexpr char kWorkload[] =
    "workload matmul\n"
    "input A: f32[64, 48]\n"
    "input B: f32[48, 80]\n"
    "output C[i: 64, j: 80] = sum(k: 48) A[i, k] * B[k, j]\n";
constexpr char kGivenOpen[] =
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2)\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "reorder(l3, l1, l4)\n"
    "parallel(l3)\n";
// A trace in which every sampling is decided.
constexpr char kDecided[] =
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2) = [16, 4]\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "parallel(l3)\n"
    "x2 = sample_categorical(candidates=[1, 2, 4]) = [2]\n"
    "l5, l6 = split(l4, 0, x2)\n";

ir::Workload GivenMatmul() { return ir::ParseWorkload(kWorkload).value(); }

absl::StatusOr<std::unique_ptr<DesignSpace>> Given(absl::string_view trace) {
  return GivenTraceSpace(GivenMatmul(), absl::StrCat(kWorkload, trace));
}

TEST(GivenTrace, OpenSamplingsStayOpen) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto space, Given(kGivenOpen));
  EXPECT_EQ(space->text(), absl::StrCat(kWorkload, kGivenOpen));
  EXPECT_FALSE(space->only().has_value());
  std::set<std::vector<int64_t>> drawn;
  for (uint64_t i = 0; i < 100; ++i) {
    Rng rng(i);
    drawn.insert(space->Sample(rng).value());
  }
  EXPECT_EQ(drawn.size(), 7u);  // divisors of 64
}

TEST(GivenTrace, ADecidedTraceIsOneCandidateOfItsOpenSpace) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto space, Given(kDecided));
  const std::vector<int64_t> decided = {16, 4, 2};
  EXPECT_EQ(space->only(), decided);
  HONE_ASSERT_OK_AND_ASSIGN(const auto open, DesignSpace::FromText(space->text()));
  EXPECT_EQ(open->digest(), space->digest());
  EXPECT_FALSE(open->only().has_value());

  Rng rng(3);
  EXPECT_EQ(space->Sample(rng).value(), decided);
  EXPECT_EQ(space->Crossover(decided, decided, rng).value(), decided);
  EXPECT_THAT(space->Mutate(decided, rng), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(space->IsLegal(decided));
  EXPECT_FALSE(space->IsLegal(std::vector<int64_t>{32, 2, 2}));
  EXPECT_EQ(schedule::TraceFileText(*space->workload(), space->trace(), decided),
            absl::StrCat(kWorkload, kDecided));
}

TEST(GivenTrace, ATraceWithoutSamplingsIsOneCandidate) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto space,
      Given("trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nparallel(l0)\n"));
  EXPECT_EQ(space->only(), std::vector<int64_t>{});
}

// Every strategy proposes the candidate once and then reports that nothing is left.
TEST(GivenTrace, EveryStrategyProposesTheOneCandidateOnce) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto space, Given(kDecided));
  for (const std::string& name : search::SearchStrategyNames()) {
    search::SearchContext context;
    context.spaces = {space.get()};
    context.target = target::TargetByName("x86-avx2").value();
    HONE_ASSERT_OK_AND_ASSIGN(const auto strategy, search::CreateSearchStrategy(name, context));
    const auto first = strategy->Propose(8, 0, nullptr);
    ASSERT_THAT(first, IsOk()) << name;
    ASSERT_EQ(first->size(), 1u) << name;
    EXPECT_EQ((*first)[0].decisions, (std::vector<int64_t>{16, 4, 2})) << name;
    EXPECT_EQ((*first)[0].space_digest, space->digest()) << name;
    EXPECT_TRUE(strategy->Propose(8, 1, nullptr)->empty()) << name;
  }
}

TEST(GivenTrace, IgnoresNamesInTheWorkload) {
  const std::string text = absl::StrReplaceAll(
      absl::StrCat(kWorkload, kGivenOpen), {{"A", "Left"}, {"workload matmul", "workload mine"}});
  EXPECT_THAT(GivenTraceSpace(GivenMatmul(), text), IsOk());
}

TEST(GivenTrace, ErrorsNameTheCause) {
  const struct {
    const char* why;
    std::string text;
    const char* expected;
  } cases[] = {
      {"no trace", kWorkload, "a line 'trace 1' must follow"},
      {"malformed", absl::StrCat(kWorkload, "trace 1\nb0 = blok(\"C\")\n"),
       "6:10: unknown primitive"},
      {"another workload", absl::StrReplaceAll(absl::StrCat(kWorkload, kGivenOpen), {{"80", "81"}}),
       "another computation"},
      {"an illegal decision",
       absl::StrReplaceAll(absl::StrCat(kWorkload, kDecided), {{"[16, 4]", "[16, 3]"}}),
       "decision 1 is not legal"},
      {"a refused primitive", absl::StrCat(kWorkload, kGivenOpen, "parallel(l2)\n"), ">"},
  };
  for (const auto& c : cases) {
    const auto space = GivenTraceSpace(GivenMatmul(), c.text);
    EXPECT_THAT(space, StatusIs(absl::StatusCode::kInvalidArgument)) << c.why;
    EXPECT_NE(space.status().message().find(c.expected), std::string::npos)
        << c.why << ": " << space.status();
  }
}

}  // namespace
}  // namespace hone::space
