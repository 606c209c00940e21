#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/indices.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

absl::StatusOr<Types> InferGather(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedIndices(node, 1));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  HONE_RETURN_IF_ERROR(CheckConstantIndices(node, 1, node.Shape(0)[axis]));
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
  if (node.IsConstant(1) && node.Type(1).elements() == 1) {  // a slice, without a look-up
    const int64_t place = node.Ints(1)->front();
    index = absl::StrCat(place < 0 ? place + extent : place);
  } else {
    std::vector<std::string> at(axes.begin() + axis, axes.begin() + axis + rank);
    if (at.empty()) at = {"0"};
    index = absl::StrCat("at(", PlaceAt(node, writer, 1, at, extent), ")");
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
  HONE_RETURN_IF_ERROR(CheckConstantIndices(node, 1, node.Shape(0)[axis]));
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
  element[axis] = absl::StrCat("at(", PlaceAt(node, writer, 1, axes, node.Shape(0)[axis]), ")");
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
    return node.InvalidError(absl::StrCat("values have the type ", node.Type(2).ToText(),
                                          " instead of two elements, off and on"));
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

absl::Status CheckReverseSequence(const NodeView& node, int64_t time, int64_t batch) {
  HONE_RETURN_IF_ERROR(NeedIndices(node, 1));
  if (node.Rank(0) >= 2 && (time == 0 || time == 1) && batch == 1 - time &&
      node.Shape(1) == std::vector<int64_t>{node.Shape(0)[batch]}) {
    return absl::OkStatus();
  }
  return node.InvalidError(absl::StrCat("cannot reverse ", node.Type(0).ToText(),
                                        " by lengths of type ", node.Type(1).ToText(),
                                        "; the time and batch axes must be 0 and 1, in any order"));
}

absl::StatusOr<Types> InferReverseSequence(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t time, node.Int("time_axis", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t batch, node.Int("batch_axis", 1));
  HONE_RETURN_IF_ERROR(CheckReverseSequence(node, time, batch));
  return SameType(node);
}

absl::Status DefineReverseSequence(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t time, node.Int("time_axis", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t batch, node.Int("batch_axis", 1));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const std::string length = Convert(node.Type(1).dtype, DType::kI64, writer.In(1, {axes[batch]}));
  writer.SetBound(1, node.Shape(0)[time] + 1);
  const std::string place = absl::StrCat("index(", axes[time], ")");
  std::vector<std::string> element = axes;
  element[time] = absl::StrCat("at(select(", place, " < ", length, ", ", length, " - 1 - ", place,
                               ", ", place, "))");
  writer.Output(0, axes, writer.In(0, element));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> GatherOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Gather", 2, 2, InferGather, DefineGather, "i32 or i64 indices, checked"},
      {"GatherElements", 2, 2, InferGatherElements, DefineGatherElements,
       "i32 or i64 indices, checked"},
      {"OneHot", 3, 3, InferOneHot, DefineOneHot, "a constant depth"},
      {"ReverseSequence", 2, 2, InferReverseSequence, DefineReverseSequence},
  };
  return kOperators;
}

}  // namespace hone::graph
