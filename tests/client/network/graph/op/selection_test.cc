// Operators whose results have as many elements as their inputs say, and determinants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/client/network/graph/op/apply.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using testing::HasSubstr;

Given ConstantFloats(std::vector<int64_t> shape, std::vector<double> elements) {
  return {TensorType{ir::DType::kF32, std::move(shape)},
          ir::Scalars(elements.begin(), elements.end()), true};
}

TEST(SelectionTest, PlacesOfElementsThatAreNotZero) {
  const Given x = ConstantFloats({2, 3}, {0, 5, 0, 1, 0, -2});
  ExpectNear(Apply("NonZero", {x}), {0, 1, 1, 1, 0, 2});
  EXPECT_EQ(TypeOf("NonZero", {x})->ToText(), "i64[2, 3]");
  Given unknown = x;
  unknown.constant = false;
  EXPECT_THAT(Apply("NonZero", {unknown}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("must be constant")));
}

TEST(SelectionTest, UniqueElements) {
  const Given x = ConstantFloats({6}, {2, 1, 1, 3, 4, 3});
  auto outputs = Apply("Unique", {x}, {}, 4);
  ExpectNear(outputs, {1, 2, 3, 4}, 0);
  ExpectNear(outputs, {1, 0, 3, 4}, 1);
  ExpectNear(outputs, {1, 0, 0, 2, 3, 2}, 2);
  ExpectNear(outputs, {2, 1, 2, 1}, 3);
  outputs = Apply("Unique", {x}, {{"sorted", int64_t{0}}}, 4);
  ExpectNear(outputs, {2, 1, 3, 4}, 0);
  ExpectNear(outputs, {0, 1, 3, 4}, 1);
  ExpectNear(outputs, {0, 1, 1, 2, 3, 2}, 2);
  ExpectNear(outputs, {1, 2, 2, 1}, 3);
}

TEST(SelectionTest, UniqueSlices) {
  // The columns are (1, 2), (0, 5), (1, 2).
  const Given x = ConstantFloats({2, 3}, {1, 0, 1, 2, 5, 2});
  const auto outputs = Apply("Unique", {x}, {{"axis", int64_t{1}}}, 4);
  ExpectNear(outputs, {0, 1, 5, 2}, 0);
  ExpectNear(outputs, {1, 0}, 1);
  ExpectNear(outputs, {1, 0, 1}, 2);
  ExpectNear(outputs, {1, 2}, 3);
}

TEST(SelectionTest, BoxesThatOverlapLittle) {
  const Given boxes = ConstantFloats(
      {1, 3, 4}, {0, 0, 1, 1, /*overlaps the first*/ 0, 0.1, 1, 1.1, /*apart*/ 0, 10, 1, 11});
  const Given scores = ConstantFloats({1, 1, 3}, {0.9, 0.95, 0.1});
  const Given most = List({3}), overlap = Number(0.5f);
  ExpectNear(Apply("NonMaxSuppression", {boxes, scores, most, overlap}), {0, 0, 1, 0, 0, 2});
  ExpectNear(Apply("NonMaxSuppression", {boxes, scores, most, overlap, Number(0.2f)}), {0, 0, 1});
  ExpectNear(Apply("NonMaxSuppression", {boxes, scores, List({1}), overlap}), {0, 0, 1});
}

TEST(SelectionTest, Determinants) {
  ExpectNear(Apply("Det", {ConstantFloats({2, 2, 2}, {1, 2, 3, 4, 2, 0, 1, 3})}), {-2, 6});
  ExpectNear(
      Apply("Det", {ConstantFloats({4, 4}, {2, 1, 0, 3, 1, 5, 2, 0, 4, 1, 3, 2, 0, 2, 1, 6})}),
      {211});
  EXPECT_FALSE(Apply("Det", {ConstantFloats({2, 3}, {1, 2, 3, 4, 5, 6})}).ok());
}

}  // namespace
}  // namespace hone::graph
