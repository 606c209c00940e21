#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "client/network/graph/graph.h"

namespace hone::graph {
namespace {

TEST(ConstantDataTest, BytesOutliveTheirOwner) {
  auto owner = std::make_shared<const std::string>("weights");
  const ConstantData part(owner, absl::string_view(*owner).substr(2, 3));
  owner.reset();
  EXPECT_EQ(part.bytes(), "igh");
  EXPECT_EQ(part.size(), 3);
  EXPECT_FALSE(part.is_computed());
}

TEST(ConstantDataTest, IsComputedOnceWhenItIsRead) {
  int calls = 0;
  const ConstantData data = ConstantData::Computed(DigestOf("recipe"), 3, [&calls] {
    ++calls;
    return std::string("abc");
  });
  EXPECT_EQ(data.size(), 3);
  EXPECT_TRUE(data.is_computed());
  EXPECT_EQ(calls, 0);
  const ConstantData copy = data;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) readers.emplace_back([&] { EXPECT_EQ(data.bytes(), "abc"); });
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(copy.bytes(), "abc");
  EXPECT_EQ(calls, 1);
}

TEST(ConstantDataTest, Origins) {
  const ConstantData a("same"), b("same"), copy = a;
  EXPECT_EQ(a.origin(), copy.origin());
  EXPECT_NE(a.origin(), b.origin()) << "it does not read the elements";
  const auto compute = [] { return std::string("same"); };
  EXPECT_EQ(ConstantData::Computed(DigestOf("recipe"), 4, compute).origin(),
            ConstantData::Computed(DigestOf("recipe"), 4, compute).origin());
}

TEST(ConstantDataTest, OriginsAreNotUsedAgain) {
  // Constants of one size, one after the other, get memory that an earlier one had.
  std::vector<Digest> origins;
  for (int i = 0; i < 100; ++i) {
    const ConstantData constant(std::string(64, static_cast<char>(i)));
    const ConstantData part(std::make_shared<int>(i), constant.bytes().substr(0, 8));
    for (const ConstantData& each : {constant, part}) {
      EXPECT_EQ(std::count(origins.begin(), origins.end(), each.origin()), 0) << i;
      origins.push_back(each.origin());
    }
  }
}

}  // namespace
}  // namespace hone::graph
