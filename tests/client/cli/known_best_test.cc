#include "client/cli/known_best.h"

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

TEST(UnknownTextTest, NamesTheJobThatMeasured) {
  EXPECT_EQ(UnknownText(""), "nothing known");
  EXPECT_EQ(UnknownText("7.2"), "job 7.2, not confirmed");
  EXPECT_EQ(UnknownJson("7.2"), "7.2");
  EXPECT_TRUE(UnknownJson("").is_null());
}

}  // namespace
}  // namespace hone::cli
