#include "common/lower/index_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::lower {
namespace {

using ir::Index;
using testing::ElementsAre;
using testing::Optional;

class IndexValuesTest : public testing::Test {
 protected:
  ir::AtomTable atoms_;
  const ir::AtomId tile_ = atoms_.AddVar("tile", 3), tap_ = atoms_.AddVar("tap", 2),
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
  EXPECT_EQ(values_.RangeOf(read), (ir::Range{1, 16}));
  values_.Add(Index::Of(tap_, -1), {0, 0});
  EXPECT_THAT(values_.Of(read), Optional(ElementsAre(7, 15)));
  EXPECT_EQ(values_.RangeOf(read), (ir::Range{1, 15}));
  values_.Shrink(0);
  EXPECT_EQ(values_.RangeOf(read), (ir::Range{-1, 16}));
}

TEST_F(IndexValuesTest, ConditionsOnOtherIndicesExcludeNothing) {
  values_.Add(Index::Of(tile_, 2) + Index::Of(tap_), {5, 5});
  values_.Add(Index::Of(tile_, 3), {0, 0});
  EXPECT_THAT(values_.Of(Index::Of(tile_, 2)), Optional(ElementsAre(0, 2, 4)));
}

TEST_F(IndexValuesTest, ConditionsThatContradictEachOtherLeaveNothing) {
  values_.Add(Index::Of(tile_), {7, 9});
  const ir::Range range = values_.RangeOf(Index::Of(tile_, 2));
  EXPECT_GT(range.min, range.max);
  EXPECT_THAT(values_.Of(Index::Of(tile_, 2)), Optional(testing::IsEmpty()));
}

TEST_F(IndexValuesTest, ALongIndexHasValuesIfAConditionBoundsIt) {
  values_.Add(Index::Of(long_), {3, 4});
  EXPECT_EQ(values_.RangeOf(Index::Of(long_, 2)), (ir::Range{6, 8}));
}

}  // namespace
}  // namespace hone::lower
