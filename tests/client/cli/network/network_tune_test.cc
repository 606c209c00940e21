#include "client/cli/network/network_tune.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TooFewTrialsTest, SaysHowManyTasksGetNone) {
  EXPECT_EQ(TooFewTrialsText(23, 23), "");
  EXPECT_EQ(TooFewTrialsText(0, 23), "") << "there is no limit";
  EXPECT_EQ(TooFewTrialsText(5, 0), "") << "all tasks are known";
  EXPECT_THAT(TooFewTrialsText(10, 23),
              AllOf(HasSubstr("--trials 10 is too few for the 23 tasks to tune"),
                    HasSubstr("at least 13 of them get no trial"),
                    HasSubstr("--trials 184 gives each task about 8 trials")));
  EXPECT_THAT(TooFewTrialsText(1, 2), HasSubstr("at least 1 of them gets no trial"));
}

TEST(TooLittleTimeTest, SaysThatTasksMayGetNoTrial) {
  EXPECT_EQ(TooLittleTimeText(0, 23), "") << "there is no limit";
  EXPECT_EQ(TooLittleTimeText(92'000, 23), "");
  EXPECT_EQ(TooLittleTimeText(1000, 0), "") << "all tasks are known";
  EXPECT_THAT(TooLittleTimeText(15'000, 23),
              AllOf(HasSubstr("--time is short for the 23 tasks to tune"),
                    HasSubstr("--time 92s gives each task about 4 s")));
}

}  // namespace
}  // namespace hone::cli
