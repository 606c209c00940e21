#include "common/base/seconds_text.h"

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(SecondsTextTest, HasABlankBeforeTheUnit) {
  EXPECT_EQ(SecondsText(absl::Seconds(30)), "30 s");
  EXPECT_EQ(SecondsText(absl::Minutes(5)), "300 s");
  EXPECT_EQ(SecondsText(absl::Hours(24 * 14)), "1209600 s");
  EXPECT_EQ(SecondsText(absl::Milliseconds(500)), "0.5 s");
}

}  // namespace
}  // namespace hone
