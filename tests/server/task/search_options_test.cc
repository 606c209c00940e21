#include "server/task/search_options.h"

#include "gtest/gtest.h"

namespace hone::task {
namespace {

TEST(SearchOptionsTest, TheConfirmationOfManyTasksIsLimited) {
  EXPECT_EQ(ConfirmationLimit(absl::Seconds(10), /*cancelled=*/false), absl::Seconds(20));
  EXPECT_EQ(ConfirmationLimit(absl::Hours(1), /*cancelled=*/false), absl::Minutes(15));
  EXPECT_EQ(ConfirmationLimit(absl::Seconds(10), /*cancelled=*/false, 50), absl::Seconds(1000));
}

TEST(SearchOptionsTest, ACancelledJobConfirmsForHalfAMinuteAtMost) {
  EXPECT_EQ(ConfirmationLimit(absl::Seconds(10), /*cancelled=*/true), absl::Seconds(20));
  EXPECT_EQ(ConfirmationLimit(absl::Hours(1), /*cancelled=*/true), absl::Seconds(30));
  EXPECT_EQ(ConfirmationLimit(absl::Hours(1), /*cancelled=*/true, 50), absl::Seconds(30));
}

}  // namespace
}  // namespace hone::task
