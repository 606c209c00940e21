#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "tests/server/tuner/search/spaces.h"
#include "tests/status.h"

namespace hone::search {
namespace {

// "1, …, n"
std::string NumbersUpTo(int n) {
  std::vector<int> numbers;
  for (int i = 1; i <= n; ++i) numbers.push_back(i);
  return absl::StrJoin(numbers, ", ");
}

// The last decision changes no program, so there are always children that were never proposed.
TEST(GeneticSearch, EndsWhenEveryProgramIsKnown) {
  TestSpaces spaces(64);
  spaces.Add("redundant",
             absl::StrCat("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n",
                          "x0 = sample_categorical(candidates=[", NumbersUpTo(12), "])\n",
                          "x1 = sample_categorical(candidates=[", NumbersUpTo(10), "])\n",
                          "x2 = sample_categorical(candidates=[", NumbersUpTo(200), "])\n",
                          "l3, l4 = split(l0, 0, x0)\nl5, l6 = split(l1, 0, x1)\n"));
  HONE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SearchStrategy> strategy,
                            CreateSearchStrategy("genetic", spaces.Context(/*seed=*/7)));
  std::set<Digest> programs;
  for (uint64_t event = 0;; ++event) {
    ASSERT_LT(event, 120u);
    HONE_ASSERT_OK_AND_ASSIGN(const auto candidates, strategy->Propose(16, event, nullptr));
    if (candidates.empty()) break;
    std::vector<Measured> results;
    for (const record::Candidate& candidate : candidates) {
      const auto program = spaces.SpaceOf(candidate).Replay(candidate.decisions);
      EXPECT_TRUE(programs.insert(program->StructuralDigest()).second);
      results.push_back({candidate, record::Outcome::kOk, 1e5 * (1 + candidate.decisions[0])});
    }
    strategy->Tell(results);
  }
  EXPECT_GE(programs.size(), 110u);
  EXPECT_LE(programs.size(), 120u);
}

}  // namespace
}  // namespace hone::search
