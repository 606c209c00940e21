// The order in which tuples are combined must not matter, because schedules change it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/ir/arithmetic.h"
#include "common/ir/expr.h"

namespace hone::ir {
namespace {

using Tuple = std::vector<Scalar>;

Tuple CombineTuples(Reducer reducer, const Tuple& left, const Tuple& right) {
  const DType second = reducer == Reducer::kOnlineSoftmax ? DType::kF32 : DType::kI32;
  return {CombineScalars(reducer, 0, DType::kF32, left, right),
          CombineScalars(reducer, 1, second, left, right)};
}

TEST(CombineTest, TiesOfEveryIndexHaveOneOrder) {
  for (const Reducer reducer : {Reducer::kArgMax, Reducer::kArgMin}) {
    const double worst = std::numeric_limits<double>::infinity();
    std::vector<Tuple> tuples = {
        {Scalar(reducer == Reducer::kArgMax ? -worst : worst), Scalar(-1)}};
    for (const int value : {0, 5}) {
      for (const int index : {-8, -7, -1, 0, 1, 6})
        tuples.push_back({Scalar(value), Scalar(index)});
    }
    for (const Tuple& a : tuples) {
      EXPECT_EQ(CombineTuples(reducer, tuples[0], a), a) << "the neutral element";
      EXPECT_EQ(CombineTuples(reducer, a, tuples[0]), a) << "the neutral element";
      for (const Tuple& b : tuples) {
        EXPECT_EQ(CombineTuples(reducer, a, b), CombineTuples(reducer, b, a));
        for (const Tuple& c : tuples) {
          EXPECT_EQ(CombineTuples(reducer, CombineTuples(reducer, a, b), c),
                    CombineTuples(reducer, a, CombineTuples(reducer, b, c)));
        }
      }
    }
  }
}

TEST(CombineTest, TheLowestNonNegativeIndexWins) {
  EXPECT_EQ(CombineTuples(Reducer::kArgMax, {Scalar(5), Scalar(-2)}, {Scalar(5), Scalar(1)})[1],
            Scalar(1));
  EXPECT_EQ(CombineTuples(Reducer::kArgMax, {Scalar(5), Scalar(-7)}, {Scalar(5), Scalar(-8)})[1],
            Scalar(-8));
}

TEST(CombineTest, SoftmaxKeepsANanInEveryOrder) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tuple empty = {Scalar(-infinity), Scalar(0)}, nan = {Scalar(-infinity), Scalar(NAN)},
              one = {Scalar(1), Scalar(1)};
  EXPECT_TRUE(std::isnan(CombineTuples(Reducer::kOnlineSoftmax, nan, one)[1].real()));
  EXPECT_TRUE(std::isnan(CombineTuples(Reducer::kOnlineSoftmax, one, nan)[1].real()));
  EXPECT_TRUE(std::isnan(CombineTuples(Reducer::kOnlineSoftmax, empty, nan)[1].real()));
  EXPECT_EQ(CombineTuples(Reducer::kOnlineSoftmax, empty, one), one);
  EXPECT_EQ(CombineTuples(Reducer::kOnlineSoftmax, empty, empty)[1], Scalar(0));
}

}  // namespace
}  // namespace hone::ir
