#include "common/base/counted.h"

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(CountedTest, OnlyOneIsSingular) {
  EXPECT_EQ(Counted(0, "trial"), "0 trials");
  EXPECT_EQ(Counted(1, "trial"), "1 trial");
  EXPECT_EQ(Counted(2, "trial"), "2 trials");
}

}  // namespace
}  // namespace hone
