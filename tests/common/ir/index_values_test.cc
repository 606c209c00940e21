#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/ir/cases.h"

namespace hone::ir {
namespace {

using testing::ElementsAre;
using testing::Optional;

class IndexValuesTest : public testing::Test {
 protected:
  AtomTable atoms_;
  const AtomId tile_ = atoms_.AddVar("tile", 3), tap_ = atoms_.AddVar("tap", 2),
               long_ = atoms_.AddVar("long", int64_t{1} << 40);
  IndexValues values_{atoms_};
};

TEST_F(IndexValuesTest, ValuesAreThoseOfTheDomains) {
  EXPECT_THAT(values_.Of(Index::Of(tile_, 8) + Index::Of(tap_) + -1),
              Optional(ElementsAre(-1, 0, 7, 8, 15, 16)));
  EXPECT_THAT(values_.Of(Index(5)), Optional(ElementsAre(5)));
  EXPECT_EQ(values_.Of(Index::Of(long_)), std::nullopt);
}

TEST_F(IndexValuesTest, ConditionsExcludeValuesUntilTheyAreRemoved) {
  const Index place = Index::Of(tile_, 4);
  const Index read = Index::Of(tile_, 8) + Index::Of(tap_) + -1;  // 2 · place + tap − 1
  values_.Add(place, {1, 8});
  EXPECT_THAT(values_.Of(read), Optional(ElementsAre(7, 8, 15, 16)));
  EXPECT_EQ(values_.RangeOf(read), (Range{7, 16}));
  values_.Add(Index::Of(tap_, -1), {0, 0});
  EXPECT_THAT(values_.Of(read), Optional(ElementsAre(7, 15)));
  EXPECT_EQ(values_.RangeOf(read), (Range{7, 15}));
  values_.Shrink(0);
  EXPECT_EQ(values_.RangeOf(read), (Range{-1, 16}));
}

TEST_F(IndexValuesTest, ConditionsOnOtherIndicesExcludeNothing) {
  values_.Add(Index::Of(tile_, 2) + Index::Of(tap_), {5, 5});
  values_.Add(Index::Of(tile_, 3), {0, 0});
  EXPECT_THAT(values_.Of(Index::Of(tile_, 2)), Optional(ElementsAre(0, 2, 4)));
}

TEST_F(IndexValuesTest, ConditionsThatContradictEachOtherLeaveNothing) {
  values_.Add(Index::Of(tile_), {7, 9});
  const Range range = values_.RangeOf(Index::Of(tile_, 2));
  EXPECT_GT(range.min, range.max);
  EXPECT_THAT(values_.Of(Index::Of(tile_, 2)), Optional(testing::IsEmpty()));
}

TEST_F(IndexValuesTest, ALongIndexHasValuesIfAConditionBoundsIt) {
  values_.Add(Index::Of(long_), {3, 4});
  EXPECT_EQ(values_.RangeOf(Index::Of(long_, 2)), (Range{6, 8}));
}

TEST_F(IndexValuesTest, ConditionsThatAlwaysHoldChangeNothing) {
  values_.Add(Index::Of(tile_), {0, int64_t{1} << 62});
  values_.Add(Index::Of(tap_) + -1, {-(int64_t{1} << 62), int64_t{1} << 62});
  EXPECT_EQ(values_.RangeOf(Index::Of(tile_, 4)), (Range{0, 8}));
  EXPECT_EQ(values_.RangeOf(Index::Of(tap_, 8) + Index::Of(tile_)), (Range{0, 10}));
}

TEST_F(IndexValuesTest, ConditionsBoundIndicesThatDifferFromTheirs) {
  const AtomId i = atoms_.AddVar("i", 61), j = atoms_.AddVar("j", 61);
  const Index at = Index::Of(i), other = Index::Of(j);
  struct Case {
    std::vector<std::pair<Index, Range>> conditions;
    Index index;
    Range range;
  };
  const Index half = atoms_.FloorDiv(at, 2), odd = atoms_.Mod(at, 2), rest = atoms_.Mod(at, 4);
  const Index half_of_both = atoms_.FloorDiv(at + other, 2);
  const std::vector<Case> cases = {
      {{{at, {0, 21}}}, at * 3, {0, 63}},
      {{{at, {0, 21}}}, at * -2 + 1, {-41, 1}},
      {{{at * 3, {0, 63}}}, at, {0, 21}},
      {{{at, {0, 43}}}, half, {0, 21}},
      {{{half, {3, 21}}}, at, {6, 43}},
      {{{at, {16, 18}}}, rest, {0, 2}},
      {{{odd, {1, 1}}}, at * 5, {5, 295}},  // i is 1 to 59
      {{{odd, {0, 0}}, {at, {1, 21}}}, atoms_.FloorDiv(at + 1, 2), {1, 10}},
      {{{rest, {1, 2}}, {at, {4, 7}}}, at, {5, 6}},
      {{{at + other, {0, 10}}}, at * 3 + other * 3, {0, 30}},
      {{{at * 2 + other * 2, {0, 21}}}, at + other, {0, 10}},
      {{{at + other, {0, 10}}}, half_of_both, {0, 5}},
      {{{half_of_both, {0, 5}}}, at + other, {0, 11}},
      {{{at - other, {0, 4}}, {other, {0, 3}}}, at * 2, {0, 14}},
  };
  for (size_t c = 0; c < cases.size(); ++c) {
    SCOPED_TRACE(c);
    IndexValues values(atoms_);
    for (const auto& [index, range] : cases[c].conditions) values.Add(index, range);
    EXPECT_EQ(values.RangeOf(cases[c].index), cases[c].range)
        << values.RangeOf(cases[c].index).min << " " << values.RangeOf(cases[c].index).max;
  }
}

// Draws sums with quotients and remainders of three variables.
class RandomIndices {
 public:
  RandomIndices(uint64_t seed, AtomTable& atoms, std::vector<AtomId> vars)
      : rng_(seed), atoms_(atoms), vars_(std::move(vars)) {}
  int64_t Draw(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(rng_);
  }
  Index DrawIndex(int depth) {
    Index index(Draw(-4, 4));
    for (int64_t terms = Draw(1, 2); terms-- > 0;) {
      Index term = Index::Of(vars_[Draw(0, vars_.size() - 1)]);
      if (depth > 0 && Draw(0, 2) == 0) {
        const int64_t divisor = Draw(2, 5);
        term = DrawIndex(depth - 1);
        term = Draw(0, 1) == 0 ? atoms_.FloorDiv(term, divisor) : atoms_.Mod(term, divisor);
      }
      index.AddScaled(term, Draw(-3, 3));
    }
    return index;
  }

 private:
  std::mt19937_64 rng_;
  AtomTable& atoms_;
  const std::vector<AtomId> vars_;
};

TEST(IndexValuesPropertyTest, BoundsContainTheValuesOfAllPoints) {
  constexpr int kExtent = 7;
  int points_left = 0, narrowed = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    AtomTable atoms;
    std::vector<AtomId> vars;
    for (const char* name : {"a", "b", "c"}) vars.push_back(atoms.AddVar(name, kExtent));
    RandomIndices random(seed, atoms, vars);
    std::vector<std::pair<Index, Range>> conditions;
    for (int64_t count = random.Draw(1, 3); count-- > 0;) {
      const Index index = random.DrawIndex(2);
      const int64_t least = random.Draw(-3, 6);
      conditions.push_back({index, {least, least + random.Draw(0, 12)}});
    }
    const Index index = random.DrawIndex(2);
    IndexValues values(atoms);
    for (const auto& [of, range] : conditions) values.Add(of, range);
    const Range range = values.RangeOf(index);
    const auto all = values.Of(index);
    narrowed += range != atoms.RangeOf(index);
    std::vector<int64_t> at(atoms.size());
    for (int point = 0; point < kExtent * kExtent * kExtent; ++point) {
      at[vars[0]] = point % kExtent;
      at[vars[1]] = point / kExtent % kExtent;
      at[vars[2]] = point / kExtent / kExtent;
      const bool holds = std::all_of(conditions.begin(), conditions.end(), [&](const auto& known) {
        const int64_t value = atoms.Evaluate(known.first, at);
        return value >= known.second.min && value <= known.second.max;
      });
      if (!holds) continue;
      ++points_left;
      const int64_t value = atoms.Evaluate(index, at);
      ASSERT_LE(range.min, value) << atoms.ToString(index);
      ASSERT_GE(range.max, value) << atoms.ToString(index);
      if (all.has_value()) {
        ASSERT_THAT(*all, testing::Contains(value));
      }
    }
  }
  EXPECT_GT(points_left, 10000);
  EXPECT_GT(narrowed, 1000);
}

}  // namespace
}  // namespace hone::ir
