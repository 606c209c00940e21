#include "client/cli/records/policy_text.h"

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

TEST(PolicyTextTest, NamesThePurposeAndWhatIsUnusual) {
  EXPECT_EQ(PolicyText({.name = "screen"}), "search");
  EXPECT_EQ(PolicyText({.name = "confirm"}), "confirmation");
  EXPECT_EQ(PolicyText({.name = "confirm", .repeats = 9}), "confirmation");
  EXPECT_EQ(PolicyText({.name = "screen", .cache = "flushed", .threads = 1}),
            "search, flushed caches, 1 thread");
  EXPECT_EQ(PolicyText({.name = "of a later version"}), "of a later version");
}

}  // namespace
}  // namespace hone::cli
