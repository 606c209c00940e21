#include "worker/compile/lower/domain_cases.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"

namespace hone::lower {
namespace {

using ir::Index;

// The cases and the values for which there are no points, e.g. "-1..0 (2 points) interior misses".
std::string Text(const DomainCases& cases, int64_t points) {
  std::string text;
  for (const DomainCases::Case& part : cases.partial) {
    absl::StrAppend(&text, part.first, "..", part.last, " (",
                    part.share * static_cast<double>(points), " points) ");
  }
  return absl::StrCat(text, cases.has_interior ? "interior" : "", cases.misses ? " misses" : "");
}

// Tiles of 4 pixels over a row of 14, and a window of 3 with padding 1.
TEST(DomainCasesTest, FirstAndLastTilesHaveTheirOwnCases) {
  ir::AtomTable atoms;
  const Index runtime =
      Index::Of(atoms.AddVar("tile", 4), 4) + Index::Of(atoms.AddVar("tap", 3)) + -1;
  const DomainCases cases = CasesOf({runtime, {0, 3}, 1, 14}, ir::IndexValues(atoms));
  EXPECT_EQ(Text(cases, 4),
            "-1..-1 (3 points) 11..11 (3 points) 12..12 (2 points) "
            "13..13 (1 points) interior");
  EXPECT_DOUBLE_EQ(cases.Size(), 1 + 9.0 / 4);
}

// Three vectors of 16 channels, of which 20 channels remain.
TEST(DomainCasesTest, AVectorWithSomeLanesInsideIsAWholeVectorOfCode) {
  ir::AtomTable atoms;
  const Index runtime = Index::Of(atoms.AddVar("tile", 2), 48);
  const DomainCases cases = CasesOf({runtime, {0, 47}, 1, 68, 16}, ir::IndexValues(atoms));
  EXPECT_EQ(Text(cases, 3), "48..48 (2 points) interior");
  EXPECT_DOUBLE_EQ(cases.Size(), 1 + 2.0 / 3);
}

// With stride 2, two values of the runtime part leave the same pixels inside.
TEST(DomainCasesTest, ValuesWithTheSamePointsShareACase) {
  ir::AtomTable atoms;
  const Index runtime = Index::Of(atoms.AddVar("tap", 7)) + -3;
  const DomainCases cases = CasesOf({runtime, {0, 6}, 2, 8}, ir::IndexValues(atoms));
  EXPECT_EQ(Text(cases, 4), "-3..-3 (2 points) -2..-1 (3 points) 2..3 (3 points) interior");
}

TEST(DomainCasesTest, ATileThatIsLargerThanTheDomainHasNoInterior) {
  ir::AtomTable atoms;
  const DomainCases cases =
      CasesOf({Index::Of(atoms.AddVar("tap", 2)), {0, 7}, 1, 7}, ir::IndexValues(atoms));
  EXPECT_EQ(Text(cases, 8), "0..0 (7 points) 1..1 (6 points) ");
}

// Every value has the case that its points say, also if there are too many values to list them.
TEST(DomainCasesTest, CasesAreThoseOfEachValue) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed, 1);
    ir::AtomTable atoms;
    const bool many = rng.Below(4) == 0;
    const int64_t tiles = 1 + static_cast<int64_t>(rng.Below(many ? 40'000 : 9));
    const int64_t size = 1 + static_cast<int64_t>(rng.Below(8));
    const int64_t first = static_cast<int64_t>(rng.Below(12)) - 8;
    const Index runtime = Index::Of(atoms.AddVar("tile", tiles), size) + first;
    const int64_t step = 1 + static_cast<int64_t>(rng.Below(3));
    const int64_t points = 1 + static_cast<int64_t>(rng.Below(9));
    const int64_t least = static_cast<int64_t>(rng.Below(5)) - 2;
    const int64_t extent = 1 + static_cast<int64_t>(rng.Below(many ? 300'000 : 40));
    const TileCondition condition{runtime, {least, least + (points - 1) * step}, step, extent};
    const DomainCases cases = CasesOf(condition, ir::IndexValues(atoms));
    std::set<std::pair<int64_t, int64_t>> used;
    bool interior = false, misses = false;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t value = tile * size + first;
      int64_t inside = 0;
      for (int64_t p = 0; p < points; ++p) {
        const int64_t index = value + least + p * step;
        inside += index >= 0 && index < extent;
      }
      interior |= inside == points;
      misses |= inside == 0;
      int matches = 0;
      for (const DomainCases::Case& part : cases.partial) {
        if (value < part.first || value > part.last) continue;
        ++matches;
        used.insert({part.first, part.last});
        ASSERT_DOUBLE_EQ(part.share * static_cast<double>(points), static_cast<double>(inside))
            << "seed " << seed << " value " << value;
      }
      ASSERT_EQ(matches, inside > 0 && inside < points ? 1 : 0)
          << "seed " << seed << " value " << value;
    }
    EXPECT_EQ(cases.has_interior, interior) << "seed " << seed;
    EXPECT_EQ(cases.misses, misses) << "seed " << seed;
    EXPECT_EQ(cases.partial.size(), used.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hone::lower
