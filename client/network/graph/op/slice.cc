#include <algorithm>
#include <string>
#include <utility>

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

}  // namespace hone::graph
