#include "gtest/gtest.h"
#include "server/job/search/task_search.h"

namespace hone::job {
namespace {

TEST(SearchOptionsTest, TheConfirmationOfManyTasksIsLimited) {
  EXPECT_EQ(ConfirmationLimit(absl::Seconds(10), /*cancelled=*/false), absl::Seconds(20));
  EXPECT_EQ(ConfirmationLimit(absl::Hours(1), /*cancelled=*/false), absl::Minutes(15));
  EXPECT_EQ(ConfirmationLimit(absl::Seconds(10), /*cancelled=*/false, 50), absl::Seconds(1000));
}

TEST(SearchOptionsTest, AConfirmationHasTimeForSlowMeasurements) {
  const auto time = [](int limit_s, double step_s) {
    return ConfirmationTime(absl::Seconds(limit_s), absl::Seconds(step_s));
  };
  EXPECT_EQ(time(5, 0.1), absl::Seconds(1.25));
  EXPECT_EQ(time(8, 1), absl::Seconds(3));
  EXPECT_EQ(time(5, 4), absl::Seconds(2.5)) << "half of the time belongs to the search";
  EXPECT_EQ(time(600, 4), absl::Seconds(20));
}

TEST(SearchOptionsTest, ACancelledJobConfirmsForHalfAMinuteAtMost) {
  EXPECT_EQ(ConfirmationLimit(absl::Seconds(10), /*cancelled=*/true), absl::Seconds(20));
  EXPECT_EQ(ConfirmationLimit(absl::Hours(1), /*cancelled=*/true), absl::Seconds(30));
  EXPECT_EQ(ConfirmationLimit(absl::Hours(1), /*cancelled=*/true, 50), absl::Seconds(30));
}

}  // namespace
}  // namespace hone::job
