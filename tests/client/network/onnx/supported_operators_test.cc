#include "client/network/onnx/supported_operators.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hone::onnx {
namespace {

TEST(SupportedOperatorsTest, SortedWithReplacedOnes) {
  const std::vector<SupportedOperator> all = SupportedOperators();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  const auto limits = [&](const std::string& name) {
    for (const SupportedOperator& op : all) {
      if (op.name == name) return op.limits;
    }
    return std::string("absent");
  };
  EXPECT_NE(limits("Conv"), "absent");
  EXPECT_EQ(limits("Dropout"), "does nothing outside of training");
  EXPECT_EQ(limits("Upsample"), "becomes Resize");
  EXPECT_EQ(limits("Fly"), "absent");
  EXPECT_NE(limits("Loop"), "absent");
  EXPECT_EQ(limits("Compress"), "a constant condition, except on the host");
}

}  // namespace
}  // namespace hone::onnx
