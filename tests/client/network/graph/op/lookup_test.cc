// Operators that read or write at places that are computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"

namespace hone::graph {
namespace {

using ir::DType;

Given F32(std::vector<int64_t> shape, ir::Scalars elements) {
  return {TensorType{DType::kF32, std::move(shape)}, std::move(elements)};
}
Given I64(std::vector<int64_t> shape, ir::Scalars elements) {
  return {TensorType{DType::kI64, std::move(shape)}, std::move(elements)};
}

TEST(LookupTest, TopKSortsWithTheFirstOfEqualOnes) {
  const Given x = F32({2, 4}, {1.0, 5.0, 5.0, -2.0, 0.0, -1.0, 7.0, 7.0});
  auto outputs = Apply("TopK", {x, List({3})}, {}, 2);
  ExpectNear(outputs, {5, 5, 1, 7, 7, 0}, 0);
  ExpectNear(outputs, {1, 2, 0, 2, 3, 0}, 1);
  outputs = Apply("TopK", {x, List({1})}, {{"axis", int64_t{0}}, {"largest", int64_t{0}}}, 2);
  ExpectNear(outputs, {0, -1, 5, -2}, 0);
  ExpectNear(outputs, {1, 1, 0, 0}, 1);
  GoldenOfTest().Add(Apply("TopK", {x, List({5})}).status().message());
}

TEST(LookupTest, TopKAgainstSort) {
  std::mt19937 random(3);
  const Given x = Wholes(DType::kI32, {40}, -9, 9, random);
  std::vector<int64_t> order(40);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return x.elements[b].whole() < x.elements[a].whole();
  });
  order.resize(12);
  std::vector<double> values;
  for (const int64_t i : order) values.push_back(x.elements[i].real());
  const auto outputs = Apply("TopK", {x, List({12})}, {}, 2);
  ExpectNear(outputs, values, 0);
  ExpectNear(outputs, {order.begin(), order.end()}, 1);
}

TEST(LookupTest, ScatterElements) {
  GoldenOfTest golden;
  const Given data = F32({1, 5}, {1.0, 2.0, 3.0, 4.0, 5.0});
  const Given places = I64({1, 3}, {1, -2, 1}), updates = F32({1, 3}, {10.0, 20.0, 30.0});
  const auto scatter = [&](const char* reduction) {
    return Apply("ScatterElements", {data, places, updates},
                 {{"axis", int64_t{1}}, {"reduction", std::string(reduction)}});
  };
  ExpectNear(scatter("none"), {1, 30, 3, 20, 5});
  ExpectNear(scatter("add"), {1, 42, 3, 24, 5});
  ExpectNear(scatter("mul"), {1, 600, 3, 80, 5});
  ExpectNear(scatter("max"), {1, 30, 3, 20, 5});
  ExpectNear(scatter("min"), {1, 2, 3, 4, 5});
  golden.Add(scatter("mean").status().message());
  golden.Add(Apply("ScatterElements", {data, places, F32({1, 2}, {1.0, 2.0})}).status().message());
}

// Indices may be for a part of the other dimensions.
TEST(LookupTest, ScatterElementsInAPart) {
  const Given data = F32({3, 2}, {0.0, 0.0, 0.0, 0.0, 0.0, 0.0});
  for (const DType dtype : {DType::kI32, DType::kI64}) {
    const Given places{TensorType{dtype, {2, 1}}, {2, 0}};
    ExpectNear(Apply("ScatterElements", {data, places, F32({2, 1}, {8.0, 9.0})}),
               {9, 0, 0, 0, 8, 0});
  }
}

TEST(LookupTest, ScatterND) {
  const Given data = F32({3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  // Whole rows, and single elements.
  ExpectNear(Apply("ScatterND", {data, I64({2, 1}, {2, -3}), F32({2, 2}, {7.0, 8.0, 9.0, 10.0})}),
             {9, 10, 3, 4, 7, 8});
  const Given places = I64({1, 3, 2}, {0, 1, 2, 0, 0, 1}), updates = F32({1, 3}, {7.0, 8.0, 9.0});
  ExpectNear(Apply("ScatterND", {data, places, updates}), {1, 9, 3, 4, 8, 6});
  ExpectNear(Apply("ScatterND", {data, places, updates}, {{"reduction", std::string("add")}}),
             {1, 18, 3, 4, 13, 6});
  GoldenOfTest().Add(Apply("ScatterND", {data, places, data}).status().message());
}

TEST(LookupTest, ReverseSequence) {
  GoldenOfTest golden;
  const Given x = F32({3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  ExpectNear(Apply("ReverseSequence", {x, I64({2}, {3, 2})}), {5, 4, 3, 2, 1, 6});
  ExpectNear(Apply("ReverseSequence", {x, I64({3}, {1, 2, 0})},
                   {{"time_axis", int64_t{1}}, {"batch_axis", int64_t{0}}}),
             {1, 2, 4, 3, 5, 6});
  golden.Add(Apply("ReverseSequence", {x, I64({3}, {1, 2, 0})}).status().message());
  golden.Add(Apply("ReverseSequence", {x, I64({3}, {1, 2, 0})},
                   {{"time_axis", int64_t{-999'999}}, {"batch_axis", int64_t{1'000'000}}})
                 .status()
                 .message());
}

TEST(LookupTest, ConstantIndicesMustExist) {
  const Given data = F32({3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  const auto scatter = [&](std::vector<int64_t> shape, ir::Scalars places) {
    Given indices = I64(shape, std::move(places));
    indices.constant = true;
    const Given updates = shape[1] == 1 ? F32({1, 2}, {7.0, 8.0}) : F32({1}, {7.0});
    return Apply("ScatterND", {data, indices, updates}).ok();
  };
  EXPECT_TRUE(scatter({1, 1}, {-3}));
  for (const int64_t place : {3, -4}) EXPECT_FALSE(scatter({1, 1}, {place})) << place;
  EXPECT_TRUE(scatter({1, 2}, {2, 1}));
  EXPECT_FALSE(scatter({1, 2}, {1, 2})) << "the columns have different ranges";
  for (const int64_t length : {4, -1}) {
    Given lengths = I64({2}, {1, length});
    lengths.constant = true;
    EXPECT_FALSE(Apply("ReverseSequence", {data, lengths}).ok()) << length;
  }
}

// Tuning draws indices that exist.
TEST(LookupTest, IndicesHaveABound) {
  GoldenOfTest golden;
  const Given table = F32({5, 2}, ir::Scalars(10, 0.5));
  golden.Add(TextOf("Gather", {table, I64({3}, {0, 1, 2})}));
  golden.Add(TextOf("GatherElements", {table, I64({1, 2}, {0, 1})}));
  golden.Add(TextOf("ScatterND", {table, I64({1, 2}, {0, 1}), F32({1}, {1.0})}));
}

}  // namespace
}  // namespace hone::graph
