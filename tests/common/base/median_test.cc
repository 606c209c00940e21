#include "common/base/median.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(QuantileTest, Interpolates) {
  EXPECT_DOUBLE_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(Quantile({1, 2}, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(Quantile({5}, 0.75), 5);
  EXPECT_DOUBLE_EQ(Quantile({1, 2, 3, 4, 5}, 0.25), 2);
}

}  // namespace
}  // namespace hone
