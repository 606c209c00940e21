#include "common/base/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hone {
namespace {

TEST(NearestTest, FindsTheNearestName) {
  EXPECT_EQ(Nearest("mtamul", {"matmul", "conv2d"}), "matmul");
  EXPECT_EQ(Nearest("tuen", {"run", "tune"}), "tune");
  EXPECT_EQ(Nearest("cii", {"co", "ci"}), "ci");
  EXPECT_EQ(Nearest("exp", {"erf", "exp"}), "exp");
  EXPECT_EQ(Nearest("x", {"y"}), "");
  EXPECT_EQ(Nearest("foo", {"not", "for_each"}), "");
  EXPECT_EQ(Nearest("anything", {}), "");
}

TEST(NearestTest, PrefixIsNear) {
  EXPECT_EQ(Nearest("product", {"sum", "prod", "min"}), "prod");
  EXPECT_EQ(Nearest("maximum", {"min", "max", "argmax"}), "max");
  EXPECT_EQ(Nearest("tensor", {"tensorize", "unroll"}), "tensorize");
}

TEST(NearestTest, ErrorSuggestsTheNearestName) {
  EXPECT_EQ(DidYouMean("mtamul", {"matmul"}), "; did you mean 'matmul'?");
  EXPECT_EQ(DidYouMean("conv9d", {"matmul"}), "");
  EXPECT_EQ(DidYouMeanOneOf("tuen", "commands", {"tune", "best"}),
            "; did you mean 'tune'? The commands are tune, best");
  EXPECT_EQ(DidYouMeanOneOf("x", "commands", {"tune", "best"}), "; the commands are tune, best");
}

}  // namespace
}  // namespace hone
