#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/op/element_type.h"
#include "common/graph/op/families.h"
#include "common/graph/op/formula.h"

namespace hone::graph {
namespace {

using ir::DType;

absl::Status NeedIndices(const NodeView& node, int input) {
  const DType dtype = node.Type(input).dtype;
  if (dtype == DType::kI32 || dtype == DType::kI64) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("indices are ", node.Type(input).ToText()));
}

// A computed index of a dimension; negative ones count from its end.
std::string At(const NodeView& node, StageWriter& writer, int input,
               const std::vector<std::string>& element, int64_t extent) {
  const std::string index = writer.In(input, element);
  if (node.IsConstant(input)) {
    const auto indices = node.Ints(input);
    if (std::all_of(indices->begin(), indices->end(), [](int64_t i) { return i >= 0; })) {
      return absl::StrCat("at(", index, ")");
    }
  }
  return absl::StrCat("at(select(", index, " < 0, ", index, " + ", extent, ", ", index, "))");
}

absl::Status CheckConstant(const NodeView& node, int input, int64_t extent) {
  if (!node.IsConstant(input)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, node.Ints(input));
  for (const int64_t index : indices) {
    if (index < -extent || index >= extent) {
      return node.InvalidError(absl::StrCat("index ", index, " of ", extent, " elements"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferGather(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedIndices(node, 1));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  HONE_RETURN_IF_ERROR(CheckConstant(node, 1, node.Shape(0)[axis]));
  std::vector<int64_t> shape = node.Shape(0);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, node.Shape(1).begin(), node.Shape(1).end());
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::Status DefineGather(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  const int64_t extent = node.Shape(0)[axis], rank = node.Rank(1);
  std::string index;
  if (node.IsConstant(1) && node.Type(1).elements() == 1) {  // as a slice, without a look-up
    const int64_t place = node.Ints(1)->front();
    index = absl::StrCat(place < 0 ? place + extent : place);
  } else {
    std::vector<std::string> at(axes.begin() + axis, axes.begin() + axis + rank);
    if (at.empty()) at = {"0"};
    index = At(node, writer, 1, at, extent);
  }
  std::vector<std::string> element(axes.begin(), axes.begin() + axis);
  element.push_back(index);
  if (node.Rank(0) > 1) element.insert(element.end(), axes.begin() + axis + rank, axes.end());
  writer.Output(0, axes, writer.In(0, element));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferGatherElements(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedIndices(node, 1));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  HONE_RETURN_IF_ERROR(CheckConstant(node, 1, node.Shape(0)[axis]));
  bool fits = node.Rank(1) == node.Rank(0);
  for (int64_t d = 0; fits && d < node.Rank(0); ++d) {
    fits = d == axis || node.Shape(1)[d] <= node.Shape(0)[d];
  }
  if (fits) return Types{{node.Type(0).dtype, node.Shape(1)}};
  return node.InvalidError(absl::StrCat("indices of type ", node.Type(1).ToText(), " do not fit ",
                                        node.Type(0).ToText()));
}

absl::Status DefineGatherElements(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(1));
  std::vector<std::string> element = axes;
  element[axis] = At(node, writer, 1, axes, node.Shape(0)[axis]);
  writer.Output(0, axes, writer.In(0, element));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Depth(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> depth, node.Ints(1));
  if (depth.size() == 1 && depth[0] > 0) return depth[0];
  return node.InvalidError("depth must be one positive number");
}

absl::StatusOr<Types> InferOneHot(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_ASSIGN_OR_RETURN(const int64_t depth, Depth(node));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0) + 1));
  if (node.Shape(2) != std::vector<int64_t>{2}) {
    return node.InvalidError(absl::StrCat("values are ", node.Type(2).ToText()));
  }
  std::vector<int64_t> shape = node.Shape(0);
  shape.insert(shape.begin() + axis, depth);
  return Types{{node.Type(2).dtype, std::move(shape)}};
}

absl::Status DefineOneHot(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t depth, Depth(node));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0) + 1));
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  std::vector<std::string> at = axes;
  at.erase(at.begin() + axis);
  if (at.empty()) at = {"0"};
  const std::string index = Convert(node.Type(0).dtype, DType::kI64, writer.In(0, at));
  const std::string place = absl::StrCat("index(", axes[axis], ")");
  writer.Output(0, axes,
                absl::StrCat("select(", index, " == ", place, " or ", index, " + ", depth, " == ",
                             place, ", ", writer.In(2, {"1"}), ", ", writer.In(2, {"0"}), ")"));
  return absl::OkStatus();
}

constexpr OperatorDef kOperators[] = {
    {"Gather", 2, 2, InferGather, DefineGather,
     "i32 or i64 indices; those outside of the dimension are clamped"},
    {"GatherElements", 2, 2, InferGatherElements, DefineGatherElements,
     "i32 or i64 indices; those outside of the dimension are clamped"},
    {"OneHot", 3, 3, InferOneHot, DefineOneHot, "a constant depth"},
};

}  // namespace

absl::Span<const OperatorDef> GatherOperators() { return kOperators; }

}  // namespace hone::graph
