#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "common/base/status_macros.h"

// Operators whose results have as many elements as the elements of their inputs say. All shapes are
// fixed when a network is imported, so these inputs must be constant, and no stages remain.
namespace hone::graph {
namespace {

using ir::DType;
using ir::Scalar;
using ir::Scalars;

constexpr int64_t kMaxSelected = int64_t{1} << 24;  // elements to look through
constexpr int64_t kMaxCompared = int64_t{1} << 28;  // pairs of boxes

// The elements of a constant input. Unimplemented: there are too many.
absl::StatusOr<Scalars> ElementsToSelect(const NodeView& node, int input) {
  if (node.Type(input).elements() > kMaxSelected) {
    return node.UnimplementedError(absl::StrCat("looks through ", node.Type(input).ToText(),
                                                "; at most ", kMaxSelected,
                                                " elements are supported"));
  }
  return node.Elements(input);
}

absl::StatusOr<Types> InferNonZero(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Scalars elements, ElementsToSelect(node, 0));
  const int64_t count = std::count_if(elements.begin(), elements.end(),
                                      [](const Scalar& element) { return element.IsTrue(); });
  return Types{{DType::kI64, {node.Rank(0), count}}};
}

absl::StatusOr<std::vector<Scalars>> FoldNonZero(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Scalars elements, ElementsToSelect(node, 0));
  const std::vector<int64_t>& shape = node.Shape(0);
  Scalars places;  // dimension by dimension
  int64_t stride = node.Type(0).elements();
  for (const int64_t extent : shape) {
    if (elements.empty()) break;
    stride /= extent;
    for (size_t i = 0; i < elements.size(); ++i) {
      if (elements[i].IsTrue()) places.push_back(static_cast<int64_t>(i) / stride % extent);
    }
  }
  return std::vector<Scalars>{std::move(places)};
}

// The different slices of a tensor along an axis, or its different elements.
struct Distinct {
  std::vector<int64_t> shape;   // of the slices in the result
  std::vector<int64_t> first;   // where each slice occurs first
  std::vector<int64_t> number;  // for each slice of the tensor, its place in the result
  std::vector<int64_t> count;
  int64_t outer = 1, slices = 1, inner = 1;  // the extents before, of, and after the axis
  Scalars elements;

  static absl::StatusOr<Distinct> Of(const NodeView& node);

  const Scalar& At(int64_t outside, int64_t slice, int64_t inside) const {
    return elements[(outside * slices + slice) * inner + inside];
  }
  // Whether slice a comes before slice b; NaN comes last.
  bool IsLess(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const Scalar &x = At(o, a, i), &y = At(o, b, i);
        if (x == y) continue;
        const bool x_is_nan = std::isnan(x.real()), y_is_nan = std::isnan(y.real());
        if (x_is_nan && y_is_nan) continue;
        if (x_is_nan || y_is_nan) return y_is_nan;
        return x < y;
      }
    }
    return false;
  }
};

absl::StatusOr<Distinct> Distinct::Of(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t sorted, node.Int("sorted", 1));
  Distinct d;
  HONE_ASSIGN_OR_RETURN(d.elements, ElementsToSelect(node, 0));
  int64_t axis = 0;
  if (node.HasAttribute("axis")) {
    HONE_ASSIGN_OR_RETURN(axis, node.AxisAttribute("axis", 0, node.Rank(0)));
    d.shape = node.Shape(0);
    for (int64_t e = 0; e < axis; ++e) d.outer *= d.shape[e];
    for (size_t e = axis + 1; e < d.shape.size(); ++e) d.inner *= d.shape[e];
    d.slices = d.shape[axis];
  } else {
    d.shape = {node.Type(0).elements()};
    d.slices = d.shape[0];
  }
  if (d.slices > kMaxSelected) {  // of no elements
    return node.UnimplementedError(
        absl::StrCat(d.slices, " slices are not supported; at most ", kMaxSelected));
  }
  std::vector<int64_t> order(d.slices);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return d.IsLess(a, b); });
  d.number.resize(d.slices);
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || d.IsLess(order[i - 1], order[i])) {
      d.first.push_back(order[i]);
      d.count.push_back(0);
    }
    d.number[order[i]] = std::ssize(d.first) - 1;
    ++d.count.back();
  }
  if (sorted == 0) {  // in the order of their first occurrences
    std::vector<int64_t> moved(d.first.size()), place(d.first.size());
    std::iota(moved.begin(), moved.end(), 0);
    std::sort(moved.begin(), moved.end(),
              [&](int64_t a, int64_t b) { return d.first[a] < d.first[b]; });
    const std::vector<int64_t> first = d.first, count = d.count;
    for (size_t i = 0; i < moved.size(); ++i) {
      d.first[i] = first[moved[i]];
      d.count[i] = count[moved[i]];
      place[moved[i]] = static_cast<int64_t>(i);
    }
    for (int64_t& number : d.number) number = place[number];
  }
  d.shape[axis] = std::ssize(d.first);
  return d;
}

absl::StatusOr<Types> InferUnique(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Distinct d, Distinct::Of(node));
  const int64_t count = std::ssize(d.first);
  return Types{{node.Type(0).dtype, d.shape},
               {DType::kI64, {count}},
               {DType::kI64, {d.slices}},
               {DType::kI64, {count}}};
}

absl::StatusOr<std::vector<Scalars>> FoldUnique(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Distinct d, Distinct::Of(node));
  Scalars values;
  for (int64_t o = 0; o < d.outer; ++o) {
    for (const int64_t slice : d.first) {
      for (int64_t i = 0; i < d.inner; ++i) values.push_back(d.At(o, slice, i));
    }
  }
  const auto whole = [](const std::vector<int64_t>& list) {
    return Scalars(list.begin(), list.end());
  };
  return std::vector<Scalars>{std::move(values), whole(d.first), whole(d.number), whole(d.count)};
}

struct Box {
  double top, left, bottom, right;

  double area() const { return (bottom - top) * (right - left); }
  // The intersection with another box, over the union of both.
  double OverlapWith(const Box& other) const {
    const double height = std::min(bottom, other.bottom) - std::max(top, other.top);
    const double width = std::min(right, other.right) - std::max(left, other.left);
    const double both = std::max(height, 0.0) * std::max(width, 0.0);
    const double all = area() + other.area() - both;
    return all > 0 ? both / all : 0;
  }
};

// The boxes of a sample, [boxes, 4], with corners in any order or as centers and sizes.
std::vector<Box> BoxesOf(const Scalars& numbers, int64_t sample, int64_t count, bool centers) {
  std::vector<Box> boxes;
  for (int64_t b = 0; b < count; ++b) {
    const auto at = [&](int64_t i) { return numbers[(sample * count + b) * 4 + i].real(); };
    if (centers) {
      const double x = at(0), y = at(1), width = at(2) / 2, height = at(3) / 2;
      boxes.push_back({y - height, x - width, y + height, x + width});
    } else {
      boxes.push_back({std::min(at(0), at(2)), std::min(at(1), at(3)), std::max(at(0), at(2)),
                       std::max(at(1), at(3))});
    }
  }
  return boxes;
}

// The triples (sample, class, box) that remain.
absl::StatusOr<Scalars> RemainingBoxes(const NodeView& node) {
  const std::vector<int64_t>&boxes = node.Shape(0), &scores = node.Shape(1);
  if (boxes.size() != 3 || boxes[2] != 4 || scores.size() != 3 || scores[0] != boxes[0] ||
      scores[2] != boxes[1]) {
    return node.InvalidError(absl::StrCat("scores of type ", node.Type(1).ToText(),
                                          " do not fit boxes of type ", node.Type(0).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(const int64_t centers, node.Int("center_point_box", 0));
  double limits[3] = {0, 0, -std::numeric_limits<double>::infinity()};  // of inputs 2 to 4
  for (int i = 0; i < 3; ++i) {
    if (!node.Has(2 + i)) continue;
    HONE_ASSIGN_OR_RETURN(const Scalars limit, node.Elements(2 + i));
    if (limit.size() != 1) return node.InvalidError("a limit must have one element");
    limits[i] = i == 0 ? static_cast<double>(limit[0].whole()) : limit[0].real();
  }
  HONE_ASSIGN_OR_RETURN(const Scalars corners, ElementsToSelect(node, 0));
  HONE_ASSIGN_OR_RETURN(const Scalars numbers, ElementsToSelect(node, 1));
  Scalars remaining;
  int64_t compared = 0;
  for (int64_t sample = 0; sample < scores[0]; ++sample) {
    const std::vector<Box> all = BoxesOf(corners, sample, scores[2], centers != 0);
    for (int64_t group = 0; group < scores[1]; ++group) {
      const auto score = [&](int64_t box) {
        return numbers[(sample * scores[1] + group) * scores[2] + box].real();
      };
      std::vector<int64_t> order;
      for (int64_t box = 0; box < scores[2]; ++box) {
        if (score(box) > limits[2]) order.push_back(box);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return score(a) > score(b); });
      std::vector<int64_t> kept;
      for (const int64_t box : order) {
        if (static_cast<double>(kept.size()) >= limits[0]) break;
        compared += std::ssize(kept);
        if (compared > kMaxCompared) {
          return node.UnimplementedError(
              absl::StrCat("more than ", kMaxCompared, " pairs of boxes would be compared"));
        }
        const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](int64_t other) {
          return all[box].OverlapWith(all[other]) > limits[1];
        });
        if (overlaps) continue;
        kept.push_back(box);
        for (const int64_t number : {sample, group, box}) remaining.push_back(number);
      }
    }
  }
  return remaining;
}

absl::StatusOr<Types> InferNonMaxSuppression(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Scalars remaining, RemainingBoxes(node));
  return Types{{DType::kI64, {std::ssize(remaining) / 3, 3}}};
}

absl::StatusOr<std::vector<Scalars>> FoldNonMaxSuppression(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Scalars remaining, RemainingBoxes(node));
  return std::vector<Scalars>{std::move(remaining)};
}

}  // namespace

absl::Span<const OperatorDef> SelectionOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"NonMaxSuppression", 2, 5, InferNonMaxSuppression, nullptr,
       "constant inputs, except on the host", FoldNonMaxSuppression},
      {"NonZero", 1, 1, InferNonZero, nullptr, "a constant input, except on the host", FoldNonZero},
      {"Unique", 1, 1, InferUnique, nullptr, "a constant input, except on the host", FoldUnique},
  };
  return kOperators;
}

}  // namespace hone::graph
