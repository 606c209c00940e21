// Operators that move elements, against loops over places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"

namespace hone::graph {
namespace {

using ir::DType;
using Numbers = std::vector<double>;
using Place = std::vector<int64_t>;

// The numbers 1, 2, … in a shape, so that every element is known.
Given Counted(const std::vector<int64_t>& shape) {
  Given given{TensorType{DType::kF32, shape}, {}};
  for (int64_t i = 0; i < given.type->elements(); ++i) {
    given.elements.emplace_back(static_cast<double>(i + 1));
  }
  return given;
}

// What a function says of each place of a shape.
Numbers Filled(const std::vector<int64_t>& shape, const std::function<double(const Place&)>& at) {
  const int64_t count = TensorType{DType::kF32, shape}.elements();
  Numbers result;
  for (int64_t i = 0; i < count; ++i) {
    Place place(shape.size());
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) place[d] = rest % shape[d];
    result.push_back(at(place));
  }
  return result;
}

double At(const Given& x, const Place& place) {
  int64_t flat = 0;
  for (size_t d = 0; d < place.size(); ++d) flat = flat * x.type->shape[d] + place[d];
  return x.elements[flat].real();
}

Numbers All(const Given& x) {
  Numbers result;
  for (const ir::Scalar& element : x.elements) result.push_back(element.real());
  return result;
}

TEST(ShapesTest, ReshapeKeepsTheOrder) {
  const Given x = Counted({2, 6, 1, 4});
  const std::vector<std::vector<int64_t>> shapes = {
      {48}, {12, 4}, {2, 24}, {4, 3, 4}, {2, 2, 3, 4}, {8, 6}, {1, 2, 6, 4, 1}, {3, 16}, {2, 3, 8}};
  for (const std::vector<int64_t>& shape : shapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    EXPECT_EQ(TypeOf("Reshape", {x, List(shape)})->shape, shape);
    ExpectNear(Apply("Reshape", {x, List(shape)}), All(x));
  }
  EXPECT_EQ(TypeOf("Reshape", {x, List({0, -1})})->shape, std::vector<int64_t>({2, 24}));
  EXPECT_EQ(TypeOf("Flatten", {x}, {{"axis", int64_t{2}}})->shape, std::vector<int64_t>({12, 4}));
  EXPECT_EQ(TypeOf("Flatten", {x}, {{"axis", int64_t{4}}})->shape, std::vector<int64_t>({48, 1}));
  EXPECT_EQ(TypeOf("Squeeze", {x})->shape, std::vector<int64_t>({2, 6, 4}));
  EXPECT_EQ(TypeOf("Squeeze", {x, List({-2})})->shape, std::vector<int64_t>({2, 6, 4}));
  EXPECT_EQ(TypeOf("Unsqueeze", {x, List({0, -1})})->shape,
            std::vector<int64_t>({1, 2, 6, 1, 4, 1}));
  ExpectNear(Apply("Unsqueeze", {x, List({0, -1})}), All(x));
  ExpectNear(Apply("Reshape", {Counted({1, 1}), List({})}), {1});
}

TEST(ShapesTest, ReshapeErrors) {
  GoldenOfTest golden;
  const Given x = Counted({2, 6});
  const auto message = [&](const std::vector<int64_t>& shape) {
    return std::string(Apply("Reshape", {x, List(shape)}).status().message());
  };
  golden.Add(message({5}));
  golden.Add(message({-1, -1}));
  golden.Add(message({5, -1}));
  golden.Add(message({-2, 6}));
  golden.Add(message({int64_t{1} << 33, int64_t{1} << 33}));
  golden.Add(message({1, 1, 0}));
  Given dynamic = List({12});
  dynamic.constant = false;
  golden.Add(Apply("Reshape", {x, dynamic}).status().message());
  golden.Add(Apply("Squeeze", {x, List({0})}).status().message());
}

// Takes minutes if each of the axes is compared with all others.
TEST(ShapesTest, UnsqueezeByManyAxes) {
  std::vector<int64_t> axes(1'000'000);
  std::iota(axes.begin(), axes.end(), 0);
  GoldenOfTest().Add(TypeOf("Unsqueeze", {Counted({2}), List(axes)}).status().message());
}

TEST(ShapesTest, IdentityAndDropout) {
  const Given x = Counted({2, 3});
  ExpectNear(Apply("Identity", {x}), All(x));
  const auto outputs = Apply("Dropout", {x}, {}, 2);
  ExpectNear(outputs, All(x));
  ExpectNear(outputs, {1, 1, 1, 1, 1, 1}, 1);
}

TEST(ShapesTest, Transpose) {
  GoldenOfTest golden;
  const Given x = Counted({2, 3, 4});
  std::vector<int64_t> order = {0, 1, 2};
  do {
    std::vector<int64_t> shape;
    for (const int64_t d : order) shape.push_back(x.type->shape[d]);
    ExpectNear(Apply("Transpose", {x}, {{"perm", order}}), Filled(shape, [&](const Place& place) {
                 Place from(3);
                 for (int d = 0; d < 3; ++d) from[order[d]] = place[d];
                 return At(x, from);
               }));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(TypeOf("Transpose", {x})->shape, std::vector<int64_t>({4, 3, 2}));
  golden.Add(Apply("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 0, 1}}}).status().message());
  // Passes use the numbers as indices.
  golden.Add(
      Apply("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 1, -1}}}).status().message());
}

TEST(ShapesTest, DepthAndSpace) {
  const Given x = Counted({1, 8, 2, 3});
  const auto expected = [&](bool channels_first) {
    return Filled({1, 2, 4, 6}, [&](const Place& p) {
      const int64_t block = p[2] % 2 * 2 + p[3] % 2;
      return At(x, {0, channels_first ? p[1] * 4 + block : block * 2 + p[1], p[2] / 2, p[3] / 2});
    });
  };
  const auto run = [&](const std::string& mode) {
    return Apply("DepthToSpace", {x}, {{"blocksize", int64_t{2}}, {"mode", mode}});
  };
  ExpectNear(run("DCR"), expected(false));
  ExpectNear(run("CRD"), expected(true));
  // SpaceToDepth is the inverse of the mode DCR.
  const Given space{TensorType{DType::kF32, {1, 2, 4, 6}}, run("DCR")->front()};
  ExpectNear(Apply("SpaceToDepth", {space}, {{"blocksize", int64_t{2}}}), All(x));
}

TEST(ShapesTest, ExpandAndTile) {
  const Given x = Counted({3, 1});
  ExpectNear(Apply("Expand", {x, List({2, 1, 4})}),
             Filled({2, 3, 4}, [](const Place& p) { return static_cast<double>(p[1] + 1); }));
  ExpectNear(Apply("Expand", {Number(5), List({2})}), {5, 5});
  const Given y = Counted({2, 3});
  ExpectNear(Apply("Tile", {y, List({2, 2})}),
             Filled({4, 6}, [&](const Place& p) { return At(y, {p[0] % 2, p[1] % 3}); }));
  GoldenOfTest().Add(Apply("Tile", {y, List({2, -1})}).status().message());
}

TEST(ShapesTest, ConcatOfManyAndSplit) {
  GoldenOfTest golden;
  for (int64_t axis = 0; axis < 2; ++axis) {
    std::vector<Given> inputs;
    for (int64_t i = 0; i < 70; ++i) {
      inputs.push_back(Counted(axis == 0 ? std::vector<int64_t>{i % 3 + 1, 2}
                                         : std::vector<int64_t>{2, i % 3 + 1}));
      for (ir::Scalar& element : inputs.back().elements)
        element = element.real() + 100.0 * static_cast<double>(i);
    }
    Numbers expected;
    if (axis == 0) {
      for (const Given& input : inputs) {
        for (const double element : All(input)) expected.push_back(element);
      }
    } else {
      for (int64_t row = 0; row < 2; ++row) {
        for (const Given& input : inputs) {
          const int64_t n = input.type->shape[1];
          for (int64_t k = 0; k < n; ++k) expected.push_back(At(input, {row, k}));
        }
      }
    }
    ExpectNear(Apply("Concat", inputs, {{"axis", axis}}), expected);
  }
  golden.Add(Apply("Concat", {Counted({2, 3}), Counted({3, 2})}, {{"axis", int64_t{0}}})
                 .status()
                 .message());
  const Given x = Counted({2, 7});
  const auto given = Apply("Split", {x, List({2, 5})}, {{"axis", int64_t{1}}}, 2);
  ExpectNear(given, {1, 2, 8, 9}, 0);
  ExpectNear(given, {3, 4, 5, 6, 7, 10, 11, 12, 13, 14}, 1);
  const auto counted = Apply("Split", {x}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{3}}}, 3);
  ExpectNear(counted, {7, 14}, 2);
  golden.Add(Apply("Split", {x, List({2, 4})}, {{"axis", int64_t{1}}}, 2).status().message());
}

TEST(ShapesTest, SlicesAsInNumPy) {
  const Given x = Counted({10});
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return Apply("Slice", {x, List({start}), List({end}), List({0}), List({step})});
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  ExpectNear(slice(2, 5, 1), {3, 4, 5});
  ExpectNear(slice(-3, kMost, 1), {8, 9, 10});
  ExpectNear(slice(1, 8, 3), {2, 5, 8});
  ExpectNear(slice(kMost, kLeast, -4), {10, 6, 2});
  ExpectNear(slice(8, 2, -2), {9, 7, 5});
  ExpectNear(slice(0, 1, kMost), {1});
  EXPECT_EQ(TypeOf("Slice", {x, List({5}), List({5})})->shape, std::vector<int64_t>({0}));
  GoldenOfTest().Add(slice(0, 1, 0).status().message());
}

TEST(ShapesTest, Pads) {
  const Given x = Counted({3, 4});
  const std::vector<int64_t> pads = {1, 2, 2, 1}, shape = {6, 7};
  const auto place = [&](const std::string& mode, int64_t at, int64_t begin, int64_t extent) {
    int64_t i = at - begin;
    if (mode == "edge") return std::min(std::max<int64_t>(i, 0), extent - 1);
    if (mode == "wrap") return (i + extent) % extent;
    if (i < 0) i = -i;
    return i < extent ? i : 2 * (extent - 1) - i;
  };
  for (const std::string mode : {"edge", "wrap", "reflect"}) {
    SCOPED_TRACE(mode);
    ExpectNear(Apply("Pad", {x, List(pads)}, {{"mode", mode}}), Filled(shape, [&](const Place& p) {
                 return At(x, {place(mode, p[0], 1, 3), place(mode, p[1], 2, 4)});
               }));
  }
  const auto constant = [&](double value) {
    return Filled(shape, [&](const Place& p) {
      const bool inside = p[0] >= 1 && p[0] < 4 && p[1] >= 2 && p[1] < 6;
      return inside ? At(x, {p[0] - 1, p[1] - 2}) : value;
    });
  };
  ExpectNear(Apply("Pad", {x, List(pads)}), constant(0));
  ExpectNear(Apply("Pad", {x, List(pads), Number(-1.5F)}), constant(-1.5));
  ExpectNear(Apply("Pad", {x, List({1, -1}), {}, List({1})}), Filled({3, 4}, [&](const Place& p) {
               return p[1] == 0 ? 0 : At(x, {p[0], p[1] - 1});
             }));
  GoldenOfTest().Add(
      Apply("Pad", {x, List({3, 0, 0, 0})}, {{"mode", std::string("reflect")}}).status().message());
}

TEST(ShapesTest, Gathers) {
  const Given x = Counted({4, 3});
  const Given indices{TensorType{DType::kI64, {2, 2}}, {3, -4, 0, -1}};
  for (const bool constant : {false, true}) {
    Given given = indices;
    given.constant = constant;
    const int64_t rows[4] = {3, 0, 0, 3};
    ExpectNear(Apply("Gather", {x, given}), Filled({2, 2, 3}, [&](const Place& p) {
                 return At(x, {rows[p[0] * 2 + p[1]], p[2]});
               }));
  }
  const Given one{TensorType{DType::kI32, {}}, {-1}, true};
  ExpectNear(Apply("Gather", {x, one}, {{"axis", int64_t{1}}}), {3, 6, 9, 12});
  const Given elements{TensorType{DType::kI64, {2, 3}}, {3, 0, -1, 1, 1, 0}};
  ExpectNear(Apply("GatherElements", {x, elements}), {10, 2, 12, 4, 5, 3});
  GoldenOfTest().Add(Apply("Gather", {x, List({4})}).status().message());
}

TEST(ShapesTest, OneHot) {
  const Given indices{TensorType{DType::kI64, {3}}, {1, -1, 5}};
  const Given values{TensorType{DType::kF32, {2}}, {2.0, 7.0}};
  ExpectNear(Apply("OneHot", {indices, List({3}), values}), {2, 7, 2, 2, 2, 7, 2, 2, 2});
  ExpectNear(Apply("OneHot", {indices, List({2}), values}, {{"axis", int64_t{0}}}),
             {2, 2, 2, 7, 7, 2});
}

TEST(ShapesTest, Triangles) {
  const Given x = Counted({3, 4});
  for (int64_t k = -5; k <= 5; ++k) {
    SCOPED_TRACE(k);
    ExpectNear(Apply("Trilu", {x, List({k})}),
               Filled({3, 4}, [&](const Place& p) { return p[1] >= p[0] + k ? At(x, p) : 0; }));
    ExpectNear(Apply("Trilu", {x, List({k})}, {{"upper", int64_t{0}}}),
               Filled({3, 4}, [&](const Place& p) { return p[1] <= p[0] + k ? At(x, p) : 0; }));
    ExpectNear(Apply("EyeLike", {x}, {{"k", k}}),
               Filled({3, 4}, [&](const Place& p) { return p[1] == p[0] + k ? 1 : 0; }));
  }
}

TEST(ShapesTest, Constants) {
  const Given x = Counted({2, 3, 4});
  ExpectNear(Apply("Shape", {x}), {2, 3, 4});
  ExpectNear(Apply("Shape", {x}, {{"start", int64_t{-2}}, {"end", int64_t{-1}}}), {3});
  ExpectNear(Apply("Size", {x}), {24});
  ExpectNear(Apply("Constant", {}, {{"value_ints", std::vector<int64_t>{3, 1}}}), {3, 1});
  ExpectNear(Apply("Constant", {}, {{"value_float", 0.5}}), {0.5});
  ExpectNear(Apply("ConstantOfShape", {List({2, 2})}), {0, 0, 0, 0});
  ExpectNear(Apply("ConstantOfShape", {List({2}), List({9})}), {9, 9});
  ExpectNear(Apply("Range", {Number(1), Number(2), Number(0.25F)}), {1, 1.25, 1.5, 1.75});
  const auto whole = [](int64_t n) { return Given{TensorType{DType::kI64, {}}, {n}, true}; };
  ExpectNear(Apply("Range", {whole(10), whole(4), whole(-3)}), {10, 7});
  GoldenOfTest().Add(
      Apply("Range", {whole(0), whole(int64_t{1} << 40), whole(1)}).status().message());
}

// The place of output o in a dimension, as ONNX's specification computes it.
double Coordinate(const std::string& mode, double o, double from, double to) {
  const double scale = to / from;
  if (mode == "asymmetric") return o / scale;
  if (mode == "align_corners") return to > 1 ? o * (from - 1) / (to - 1) : 0;
  if (mode == "pytorch_half_pixel" && to <= 1) return 0;
  return (o + 0.5) / scale - 0.5;
}

TEST(ShapesTest, ResizesToSizes) {
  for (const std::string coordinates : {"asymmetric", "align_corners", "half_pixel",
                                        "pytorch_half_pixel", "half_pixel_symmetric"}) {
    for (const int64_t from : {3, 5}) {
      for (const int64_t to : {1, 2, 4, 6, 10}) {
        SCOPED_TRACE(testing::Message() << coordinates << " " << from << " to " << to);
        const Given x = Counted({2, from});
        const auto at = [&](int64_t row, double column) {
          const double last = static_cast<double>(from - 1);
          return At(x, {row, static_cast<int64_t>(std::min(std::max(column, 0.0), last))});
        };
        const auto expected = [&](const std::function<double(int64_t, double)>& value) {
          return Filled({2, to}, [&](const Place& p) {
            return value(p[0], Coordinate(coordinates, static_cast<double>(p[1]),
                                          static_cast<double>(from), static_cast<double>(to)));
          });
        };
        const auto run = [&](const std::string& mode, const std::string& nearest) {
          return Apply("Resize", {x, {}, {}, List({2, to})},
                       {{"coordinate_transformation_mode", coordinates},
                        {"mode", mode},
                        {"nearest_mode", nearest}});
        };
        constexpr double kTie = 1e-9;  // what rounding of the test's coordinate may change
        ExpectNear(run("nearest", "floor"),
                   expected([&](int64_t r, double c) { return at(r, std::floor(c + kTie)); }));
        ExpectNear(run("nearest", "ceil"),
                   expected([&](int64_t r, double c) { return at(r, std::ceil(c - kTie)); }));
        ExpectNear(run("nearest", "round_prefer_floor"),
                   expected([&](int64_t r, double c) { return at(r, std::ceil(c - 0.5 - kTie)); }));
        ExpectNear(run("nearest", "round_prefer_ceil"), expected([&](int64_t r, double c) {
                     return at(r, std::floor(c + 0.5 + kTie));
                   }));
        ExpectNear(run("linear", "floor"), expected([&](int64_t r, double c) {
                     const double low = std::floor(c), t = c - low;
                     return at(r, low) * (1 - t) + at(r, low + 1) * t;
                   }));
        ExpectNear(run("cubic", "floor"), expected([&](int64_t r, double c) {
                     const double low = std::floor(c);
                     double sum = 0;
                     for (int tap = -1; tap <= 2; ++tap) {
                       const double d = std::fabs(c - low - tap), a = -0.75;
                       sum +=
                           at(r, low + tap) * (d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                                                      : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a);
                     }
                     return sum;
                   }));
      }
    }
  }
}

TEST(ShapesTest, ResizesByScales) {
  GoldenOfTest golden;
  const Given x = Counted({1, 1, 2, 4});
  const Given scales{TensorType{DType::kF32, {4}}, {1.0, 1.0, 2.0, double{0.6F}}, true};
  // 0.6 of 4 columns are 2, which are 1 / 0.6 apart.
  ExpectNear(Apply("Resize", {x, {}, scales},
                   {{"coordinate_transformation_mode", std::string("asymmetric")},
                    {"nearest_mode", std::string("floor")}}),
             {1, 2, 1, 2, 5, 6, 5, 6});
  const Given seven{TensorType{DType::kF32, {1}}, {double{0.7F}}, true};
  EXPECT_EQ(TypeOf("Resize", {Counted({10}), {}, seven})->shape, std::vector<int64_t>({7}));
  golden.Add(Apply("Resize", {x, {}, scales}, {{"antialias", int64_t{1}}}).status().message());
  const Given zero{TensorType{DType::kF32, {4}}, {1.0, 1.0, 2.0, 0.0}, true};
  golden.Add(Apply("Resize", {x, {}, zero}).status().message());
}

}  // namespace
}  // namespace hone::graph
