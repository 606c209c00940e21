#include "common/ir/index.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"

namespace hone::ir {
namespace {

class IndexTest : public testing::Test {
 protected:
  AtomId Var(std::string name, int64_t extent) { return atoms_.AddVar(std::move(name), extent); }
  std::string Text(const Index& index) { return atoms_.ToString(index); }

  AtomTable atoms_;
};

TEST_F(IndexTest, EquivalentFormsAreEqual) {
  const AtomId i = Var("i", 12), j = Var("j", 4), k = Var("k", 3);
  const Index x = Index::Of(i), y = Index::Of(j), z = Index::Of(k);
  EXPECT_EQ(x + y, y + x);
  EXPECT_EQ(x + y - y, x);
  EXPECT_EQ((x + y) * 3 - y * 3, x * 3);
  EXPECT_EQ(atoms_.FloorDiv(x * 4 + y, 4), x);
  EXPECT_EQ(atoms_.Mod(x * 4 + y, 4), y);
  EXPECT_EQ(atoms_.FloorDiv(x * 4 + y + 4, 4), x + 1);
  EXPECT_EQ(atoms_.Simplify(atoms_.FloorDiv(x, 4) * 4 + atoms_.Mod(x, 4)), x);
  EXPECT_EQ(atoms_.Simplify(atoms_.FloorDiv(x, 5) * 10 + atoms_.Mod(x, 5) * 2), x * 2);
  EXPECT_EQ(atoms_.FloorDiv(atoms_.FloorDiv(x, 2), 3), atoms_.FloorDiv(x, 6));
  EXPECT_EQ(atoms_.FloorDiv(atoms_.FloorDiv(x, 2) + 1, 3), atoms_.FloorDiv(x + 2, 6));
  EXPECT_EQ(atoms_.Mod(atoms_.Mod(x, 6), 3), atoms_.Mod(x, 3));
  EXPECT_EQ(atoms_.Mod(atoms_.Mod(x, 6) + y, 3), atoms_.Mod(x + y, 3));
  EXPECT_EQ(atoms_.FloorDiv(x * 4 + y, 8), atoms_.FloorDiv(x, 2));
  EXPECT_EQ(atoms_.Mod(x * 4 + y, 8), atoms_.Mod(x, 2) * 4 + y);
  EXPECT_EQ(atoms_.FloorDiv(x * 6 + z * 4 + 1, 12), atoms_.FloorDiv(x * 3 + z * 2, 6));
  EXPECT_EQ(atoms_.FloorDiv(x, 12), Index(0));
  EXPECT_EQ(atoms_.Mod(x, 12), x);
  EXPECT_EQ(atoms_.FloorDiv(x + -12, 12), Index(-1));
  EXPECT_EQ(atoms_.Mod(x + -12, 12), x);
  EXPECT_EQ(atoms_.FloorDiv(x, 1), x);
  EXPECT_EQ(atoms_.Mod(x, 1), Index(0));
}

// Splitting a fused loop at the original boundary gives back the original loops.
TEST_F(IndexTest, SplittingAFusedLoopRestoresTheIndex) {
  const AtomId f = Var("f", 48), a = Var("a", 6), b = Var("b", 8);
  const Index row = atoms_.FloorDiv(Index::Of(f), 8), column = atoms_.Mod(Index::Of(f), 8);
  const Index parts = Index::Of(a) * 8 + Index::Of(b);
  const auto with = [&](AtomId var) { return var == f ? &parts : nullptr; };
  EXPECT_EQ(atoms_.Substitute(row, with), Index::Of(a));
  EXPECT_EQ(atoms_.Substitute(column, with), Index::Of(b));
}

TEST_F(IndexTest, PrintsReadably) {
  const AtomId i = Var("i", 10), j = Var("j", 7);
  EXPECT_EQ(Text(Index::Of(i) * 2 + Index::Of(j) + -1), "2*i + j - 1");
  EXPECT_EQ(Text(Index(0)), "0");
  EXPECT_EQ(Text(Index::Of(i) * -1), "-i");
  EXPECT_EQ(Text(Index::Of(j) - Index::Of(i) * 3), "-3*i + j");
  EXPECT_EQ(Text(atoms_.FloorDiv(Index::Of(i), 3)), "i / 3");
  EXPECT_EQ(Text(atoms_.Mod(Index::Of(i) + 1, 3) * 2), "2*((i + 1) % 3)");
  EXPECT_EQ(Text(atoms_.FloorDiv(atoms_.Mod(Index::Of(i), 6), 4)), "(i % 6) / 4");
}

TEST_F(IndexTest, FloorDivisionRoundsDown) {
  EXPECT_EQ(FloorDivInt(-1, 4), -1);
  EXPECT_EQ(FloorModInt(-1, 4), 3);
  EXPECT_EQ(FloorDivInt(-8, 4), -2);
  EXPECT_EQ(CeilDivInt(9, 4), 3);
  EXPECT_EQ(CeilDivInt(8, 4), 2);
  EXPECT_EQ(CeilDivInt(-1, 4), 0);
}

// An expression as written, with the simplified index that the table returned.
struct Written {
  Index index;
  std::function<int64_t(const std::vector<int64_t>&)> value;
  std::string text;
};

class RandomIndex {
 public:
  RandomIndex(Rng& rng, AtomTable& atoms, const std::vector<AtomId>& vars)
      : rng_(rng), atoms_(atoms), vars_(vars) {}

  Written Draw(int depth) {
    const uint64_t kind = depth == 0 ? 0 : rng_.Below(6);
    if (kind <= 1) {
      const AtomId var = vars_[rng_.Below(vars_.size())];
      const int64_t coeff = Number(-6, 9), constant = Number(-9, 9);
      return {Index::Of(var, coeff) + constant,
              [=](const std::vector<int64_t>& v) { return coeff * v[var] + constant; },
              absl::StrCat("(", coeff, "*v", var, " + ", constant, ")")};
    }
    if (kind <= 3) {
      const Written a = Draw(depth - 1), b = Draw(depth - 1);
      const int64_t factor = Number(-4, 8);
      return {atoms_.Simplify(a.index + b.index * factor),
              [=](const std::vector<int64_t>& v) { return a.value(v) + factor * b.value(v); },
              absl::StrCat("(", a.text, " + ", factor, "*", b.text, ")")};
    }
    const Written a = Draw(depth - 1);
    const int64_t divisor = Number(1, 12);
    const bool mod = kind == 5;
    return {mod ? atoms_.Mod(a.index, divisor) : atoms_.FloorDiv(a.index, divisor),
            [=](const std::vector<int64_t>& v) {
              return mod ? FloorModInt(a.value(v), divisor) : FloorDivInt(a.value(v), divisor);
            },
            absl::StrCat("(", a.text, mod ? " % " : " / ", divisor, ")")};
  }

 private:
  int64_t Number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng_.Below(high - low + 1));
  }
  Rng& rng_;
  AtomTable& atoms_;
  const std::vector<AtomId>& vars_;
};

// Simplified indices keep the value of the expression for all values of the variables; RangeOf
// bounds it; Substitute replaces variables by other indices.
TEST(RandomIndexTest, SimplifiedIndicesKeepTheirValues) {
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    Rng rng(seed);
    AtomTable atoms;
    std::vector<AtomId> vars;
    for (int i = 0; i < 3; ++i) {
      vars.push_back(atoms.AddVar(absl::StrCat("v", i), 1 + static_cast<int64_t>(rng.Below(6))));
    }
    RandomIndex random(rng, atoms, vars);
    const Written written = random.Draw(3);
    const Written other = random.Draw(1);
    // v0 is replaced by an index that stays in its domain.
    const Index with = atoms.Mod(other.index, atoms[vars[0]].range.extent());
    const Index substituted = atoms.Substitute(
        written.index, [&](AtomId var) { return var == vars[0] ? &with : nullptr; });
    const Range range = atoms.RangeOf(written.index);
    std::vector<int64_t> values(3);
    for (values[0] = 0; values[0] <= atoms[0].range.max; ++values[0]) {
      for (values[1] = 0; values[1] <= atoms[1].range.max; ++values[1]) {
        for (values[2] = 0; values[2] <= atoms[2].range.max; ++values[2]) {
          const int64_t expected = written.value(values);
          ASSERT_EQ(atoms.Evaluate(written.index, values), expected)
              << "seed " << seed << ": " << written.text << " became "
              << atoms.ToString(written.index);
          ASSERT_LE(range.min, expected) << "seed " << seed << ": " << written.text;
          ASSERT_GE(range.max, expected) << "seed " << seed << ": " << written.text;
          std::vector<int64_t> replaced = values;
          replaced[0] = FloorModInt(other.value(values), atoms[0].range.extent());
          ASSERT_EQ(atoms.Evaluate(substituted, values), written.value(replaced))
              << "seed " << seed << ": " << written.text << " with v0 = " << atoms.ToString(with)
              << " became " << atoms.ToString(substituted);
        }
      }
    }
  }
}

// Affine forms over distinct variables reach their bounds.
TEST(RandomIndexTest, RangesOfAffineFormsAreExact) {
  Rng rng(7);
  for (int round = 0; round < 500; ++round) {
    AtomTable atoms;
    Index index(static_cast<int64_t>(rng.Below(21)) - 10);
    int64_t low = index.constant(), high = low;
    for (int v = 0; v < 4; ++v) {
      const auto extent = 1 + static_cast<int64_t>(rng.Below(9));
      const auto coeff = static_cast<int64_t>(rng.Below(15)) - 7;
      index += Index::Of(atoms.AddVar("v", extent), coeff);
      (coeff > 0 ? high : low) += coeff * (extent - 1);
    }
    EXPECT_EQ(atoms.RangeOf(index), (Range{low, high}));
  }
}

TEST(AtomTableTest, RestrictedVariablesNarrowTheRange) {
  AtomTable atoms;
  const AtomId i = atoms.AddVar("i", 100), j = atoms.AddVar("j", 10);
  const Index index = atoms.FloorDiv(Index::Of(i) + Index::Of(j) * 3, 4);
  EXPECT_EQ(atoms.RangeOf(index), (Range{0, 31}));
  EXPECT_EQ(atoms.RangeOf(index, [&](AtomId var) { return var == i ? Range{8, 11} : Range{0, 9}; }),
            (Range{2, 9}));
  EXPECT_TRUE(atoms.DependsOn(index, j));
  EXPECT_FALSE(atoms.DependsOn(Index::Of(i), j));
}

}  // namespace
}  // namespace hone::ir
