#include "tests/status.h"

#include <map>
#include <memory>
#include <string>

#include "gtest/gtest-spi.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::unique_ptr<int>> Five() { return std::make_unique<int>(5); }
absl::StatusOr<std::map<int, int>> Lost() { return absl::NotFoundError("no map"); }

TEST(StatusTest, MatchesStatusesAndResults) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(Five(), IsOk());
  EXPECT_THAT(Lost(), Not(IsOk()));
  EXPECT_THAT(Lost(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Lost().status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("map")));
  EXPECT_THAT(Lost(), Not(StatusIs(absl::StatusCode::kInternal)));
  EXPECT_THAT(Lost(), Not(StatusIs(absl::StatusCode::kNotFound, "no")));
  EXPECT_THAT(Five(), StatusIs(absl::StatusCode::kOk, ""));
}

TEST(StatusTest, AFailureShowsTheStatus) {
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(Lost(), IsOk()), "NOT_FOUND: no map");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(Lost(), StatusIs(absl::StatusCode::kInternal)),
                          "NOT_FOUND: no map");
}

TEST(StatusTest, AssignsTheValue) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<int> five, Five());
  EXPECT_EQ(*five, 5);
  std::unique_ptr<int> other;
  HONE_ASSERT_OK_AND_ASSIGN(other, Five());
  EXPECT_EQ(*other, 5);
}

void AssignLost() {
  HONE_ASSERT_OK_AND_ASSIGN(const auto lost, Lost());
  FAIL() << "continues with " << lost.size();
}

TEST(StatusTest, AnErrorEndsTheTest) { EXPECT_FATAL_FAILURE(AssignLost(), "NOT_FOUND: no map"); }

}  // namespace
}  // namespace hone
