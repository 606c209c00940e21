#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// The elements start, start + step, … of a dimension.
struct Range {
  int64_t start = 0, step = 1, count = 0;
};

// A bound counts from the end if it is negative, and is clamped to the dimension. Like the text of
// ONNX, and unlike NumPy, a negative step that starts before the first element begins with that
// one.
Range RangeOf(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const int64_t high = step > 0 ? extent : extent - 1;
  const auto bound = [&](int64_t at, int64_t low) {
    if (at < 0) at = at < -extent ? low : at + extent;
    return std::min(std::max(at, low), high);
  };
  start = bound(start, 0);
  end = bound(end, step > 0 ? 0 : -1);
  step = std::min(std::max(step, -ir::kMaxElements), ir::kMaxElements);
  const int64_t span = step > 0 ? end - start : start - end;
  const int64_t stride = std::abs(step);
  return {start, step, span <= 0 ? 0 : (span + stride - 1) / stride};
}

absl::StatusOr<std::vector<Range>> Ranges(const NodeView& node) {
  const std::vector<int64_t>& shape = node.Shape(0);
  std::vector<Range> ranges;
  for (const int64_t extent : shape) ranges.push_back({0, 1, extent});
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, node.Ints(1));
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, node.Ints(2));
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (node.Has(3)) {
    HONE_ASSIGN_OR_RETURN(axes, node.Ints(3));
  }
  if (node.Has(4)) {
    HONE_ASSIGN_OR_RETURN(steps, node.Ints(4));
  }
  HONE_ASSIGN_OR_RETURN(axes, AxesOf(node, std::move(axes), node.Rank(0)));
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return node.InvalidError("starts, ends, axes and steps have different lengths");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] == 0) return node.InvalidError("a step is 0");
    ranges[axes[i]] = RangeOf(starts[i], ends[i], steps[i], shape[axes[i]]);
  }
  return ranges;
}

absl::StatusOr<Types> InferSlice(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Range> ranges, Ranges(node));
  std::vector<int64_t> shape;
  for (const Range& range : ranges) shape.push_back(range.count);
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::Status DefineSlice(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Range> ranges, Ranges(node));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<std::string> element = axes;
  for (size_t d = 0; d < ranges.size(); ++d) {
    // The step is not used if there is only one element.
    const int64_t step = ranges[d].count == 1 ? 0 : ranges[d].step;
    element[d] = Affine({{step, axes[d]}}, ranges[d].start);
  }
  writer.Output(0, axes, writer.In(0, element));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> SliceOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Slice", 3, 5, InferSlice, DefineSlice, "constant starts, ends, axes and steps"}};
  return kOperators;
}

namespace {

struct Padding {
  std::vector<int64_t> begin, end;  // per dimension; negative numbers remove elements
  std::string mode;

  static absl::StatusOr<Padding> Of(const NodeView& node) {
    const int64_t rank = node.Rank(0);
    Padding padding{std::vector<int64_t>(rank), std::vector<int64_t>(rank), ""};
    HONE_ASSIGN_OR_RETURN(padding.mode, node.String("mode", "constant"));
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, node.Ints(1));
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesInput(node, 3, rank));
    if (pads.size() != 2 * axes.size()) {
      return node.InvalidError(absl::StrCat(pads.size(), " pads for ", axes.size(), " dimensions"));
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto [least, most] = std::minmax(pads[i], pads[axes.size() + i]);
      if (least < -ir::kMaxElements || most > ir::kMaxElements) {
        return node.InvalidError("a pad is too large");
      }
      padding.begin[axes[i]] = pads[i];
      padding.end[axes[i]] = pads[axes.size() + i];
    }
    return padding;
  }
};

absl::StatusOr<Types> InferPad(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Padding padding, Padding::Of(node));
  const bool reflects = padding.mode == "reflect";
  if (padding.mode != "constant" && padding.mode != "edge" && padding.mode != "wrap" && !reflects) {
    return node.InvalidError(absl::StrCat("mode is '", padding.mode, "'"));
  }
  if (node.Has(2) && (node.Type(2).elements() != 1 || node.Type(2).dtype != node.Type(0).dtype)) {
    return node.InvalidError(absl::StrCat("the value is ", node.Type(2).ToText()));
  }
  std::vector<int64_t> shape = node.Shape(0);
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t most = std::max(padding.begin[d], padding.end[d]);
    const bool copies = padding.mode != "constant" && most > 0;
    if (copies &&
        (shape[d] == 0 || (padding.mode != "edge" && most > shape[d] - (reflects ? 1 : 0)))) {
      return node.InvalidError(absl::StrCat("pads dimension ", d, " of ", node.Type(0).ToText(),
                                            " by ", most, ", more than it has"));
    }
    shape[d] += padding.begin[d] + padding.end[d];
  }
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::Status DefineConstantPad(const NodeView& node, StageWriter& writer, const Padding& padding) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<std::string> element = axes, guards;
  for (size_t d = 0; d < padding.begin.size(); ++d) {
    element[d] = Offset(axes[d], -padding.begin[d]);
    if (padding.begin[d] <= 0 && padding.end[d] <= 0) continue;
    guards.push_back(absl::StrCat("0 <= ", element[d], " < ", node.Shape(0)[d]));
  }
  const std::string value =
      node.Has(2) ? FirstAsNumber(node, writer, 2) : Literal(node.Type(0).dtype, 0);
  writer.Output(0, axes, Guarded(writer.In(0, element), guards, value));
  return absl::OkStatus();
}

// Index expressions of the elements that fill the padding before and after a dimension.
struct Outside {
  std::string before, after;
};

Outside OutsideOf(absl::string_view mode, const std::string& axis, int64_t begin, int64_t extent) {
  if (mode == "edge") return {"0", absl::StrCat(extent - 1)};
  if (mode == "wrap") return {Offset(axis, extent - begin), Offset(axis, -extent - begin)};
  return {Affine({{-1, axis}}, begin), Affine({{-1, axis}}, 2 * (extent - 1) + begin)};
}

// Writes the modes that copy elements, one stage per dimension, because each has three cases.
absl::Status DefineCopyingPad(const NodeView& node, StageWriter& writer, const Padding& padding) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<int64_t> shape = node.Shape(0);
  std::string stage;  // the result so far; the input at first
  const auto at = [&](const std::vector<std::string>& element) {
    return stage.empty() ? writer.In(0, element) : Element(stage, element);
  };
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t begin = padding.begin[d], end = padding.end[d], extent = shape[d];
    if (begin == 0 && end == 0) continue;
    const auto with = [&](std::string index) {
      std::vector<std::string> element = axes;
      element[d] = std::move(index);
      return at(element);
    };
    const Outside outside = OutsideOf(padding.mode, axes[d], begin, extent);
    std::string value = with(Offset(axes[d], -begin));
    if (end > 0) {
      value = Guarded(value, {absl::StrCat(axes[d], " < ", extent + begin)}, with(outside.after));
    }
    if (begin > 0) {
      value = Guarded(with(outside.before), {absl::StrCat(axes[d], " < ", begin)}, value);
    }
    shape[d] += begin + end;
    stage = writer.Stage("pad", axes, shape, value);
  }
  writer.Output(0, axes, at(axes));
  return absl::OkStatus();
}

absl::Status DefinePad(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Padding padding, Padding::Of(node));
  return padding.mode == "constant" ? DefineConstantPad(node, writer, padding)
                                    : DefineCopyingPad(node, writer, padding);
}

}  // namespace

absl::Span<const OperatorDef> PadOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Pad", 2, 4, InferPad, DefinePad, "constant pads and axes"}};
  return kOperators;
}

}  // namespace hone::graph
