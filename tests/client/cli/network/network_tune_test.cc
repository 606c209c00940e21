#include "client/cli/network/network_tune.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

TEST(TooFewTrialsTest, SaysHowManyTasksGetNone) {
  GoldenOfTest golden;
  EXPECT_EQ(TooFewTrialsText(23, 23), "");
  EXPECT_EQ(TooFewTrialsText(0, 23), "") << "there is no limit";
  EXPECT_EQ(TooFewTrialsText(5, 0), "") << "all tasks are known";
  golden.Add(TooFewTrialsText(10, 23));
  golden.Add(TooFewTrialsText(1, 2));
}

TEST(TooLittleTimeTest, SaysThatTasksMayGetNoTrial) {
  EXPECT_EQ(TooLittleTimeText(0, 23), "") << "there is no limit";
  EXPECT_EQ(TooLittleTimeText(92'000, 23), "");
  EXPECT_EQ(TooLittleTimeText(1000, 0), "") << "all tasks are known";
  GoldenOfTest().Add(TooLittleTimeText(15'000, 23));
}

}  // namespace
}  // namespace hone::cli
