#include "client/network/graph/op/gather_scatter.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/stage_writer.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"

namespace hone::graph {

absl::Status CheckConstantIndices(const NodeView& node, int input, int64_t least, int64_t extent) {
  if (!node.IsConstant(input)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, node.Ints(input));
  for (const int64_t index : indices) {
    if (index < least || index >= extent) {
      return node.InvalidError(absl::StrCat("index ", index, " of ", extent, " elements"));
    }
  }
  return absl::OkStatus();
}

namespace {

// An index that may count from the end.
absl::Status CheckConstantIndices(const NodeView& node, int input, int64_t extent) {
  return CheckConstantIndices(node, input, -extent, extent);
}

using ir::DType;

// Inputs whose elements are indices into a dimension of another tensor. Negative indices count from
// its end.

// Checks the type of the indices. InvalidArgument, naming the node: it is neither i32 nor i64.
absl::Status NeedIndices(const NodeView& node, int input) {
  const DType dtype = node.Type(input).dtype;
  if (dtype == DType::kI32 || dtype == DType::kI64) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("indices are ", node.Type(input).ToText()));
}

// Returns a formula for an element of the input as a non-negative index into a dimension of this
// extent. Declares the extent as the bound of the input.
std::string PlaceAt(const NodeView& node, StageWriter& writer, int input,
                    const std::vector<std::string>& element, int64_t extent) {
  const std::string index = writer.In(input, element);
  writer.SetBound(input, extent);
  if (node.IsConstant(input)) {
    const auto indices = node.Ints(input);
    if (std::all_of(indices->begin(), indices->end(), [](int64_t i) { return i >= 0; })) {
      return index;
    }
  }
  return absl::StrCat("select(", index, " < 0, ", index, " + ", extent, ", ", index, ")");
}

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
    return CheckConstantIndices(node, 1, /*least=*/0, node.Shape(0)[time] + 1);
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

// Operators that change elements of a tensor at computed indices. A stage computes every element of
// its result once, so each element searches for its updates.

enum ScatterInput { kData, kIndices, kUpdates };

// The updates that an element of the result may get.
struct Updates {
  std::vector<std::string> axes;  // of the reduction over the updates
  std::vector<int64_t> extents;
  std::vector<std::string> guards;
  std::string number;                // the number of an update, as an index
  std::string matches;               // whether the update is for this element
  std::string value;                 // the element of the updates
  std::vector<std::string> changed;  // the axes of the result on which the match depends
  std::vector<int64_t> changed_shape;
};

absl::StatusOr<std::string> ReductionOf(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::string reduction, node.String("reduction", "none"));
  for (const char* const known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return reduction;
  }
  return node.InvalidError(absl::StrCat("reduction is '", reduction, "'"));
}

absl::Status WriteResult(const NodeView& node, StageWriter& writer, const Updates& updates) {
  HONE_ASSIGN_OR_RETURN(const std::string reduction, ReductionOf(node));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(kData));
  const DType dtype = node.Type(kData).dtype;
  const std::string data = writer.In(kData, axes);
  const auto reduce = [&](absl::string_view reducer, absl::string_view matches,
                          absl::string_view otherwise) {
    return Element(
        writer.Stage("update", axes, node.Shape(kData),
                     absl::StrCat(Reduction(reducer, updates.axes, updates.extents, updates.guards),
                                  "select(", matches, ", ", updates.value, ", ", otherwise, ")")),
        axes);
  };
  if (reduction == "add") {
    writer.Output(0, axes,
                  absl::StrCat(data, " + ", reduce("sum", updates.matches, Literal(dtype, 0))));
  } else if (reduction == "mul") {
    writer.Output(0, axes,
                  absl::StrCat(data, " * ", reduce("prod", updates.matches, Literal(dtype, 1))));
  } else if (reduction == "max" || reduction == "min") {
    writer.Output(
        0, axes,
        absl::StrCat(reduction, "(", data, ", ", reduce(reduction, updates.matches, data), ")"));
  } else {
    // If an element has several updates, the last one counts.
    const std::string last = Element(
        writer.Stage(
            "last", updates.changed, updates.changed_shape,
            absl::StrCat(Reduction("max", updates.axes, updates.extents, updates.guards), "select(",
                         updates.matches, ", index(", updates.number, "), i64(-1))")),
        updates.changed);
    const std::string is_last = absl::StrCat("index(", updates.number, ") == ", last);
    writer.Output(0, axes,
                  absl::Substitute("select($0 < 0, $1, $2)", last, data,
                                   reduce("sum", is_last, Literal(dtype, 0))));
  }
  return absl::OkStatus();
}

absl::Status CheckTypes(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, kData));
  HONE_RETURN_IF_ERROR(NeedType(node, kUpdates, node.Type(kData).dtype));
  HONE_RETURN_IF_ERROR(NeedIndices(node, kIndices));
  return ReductionOf(node).status();
}

absl::StatusOr<Types> InferScatterElements(const NodeView& node) {
  HONE_RETURN_IF_ERROR(CheckTypes(node));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(kData)));
  HONE_RETURN_IF_ERROR(CheckConstantIndices(node, kIndices, node.Shape(kData)[axis]));
  bool fits =
      node.Rank(kIndices) == node.Rank(kData) && node.Shape(kUpdates) == node.Shape(kIndices);
  for (int64_t d = 0; fits && d < node.Rank(kData); ++d) {
    fits = d == axis || node.Shape(kIndices)[d] <= node.Shape(kData)[d];
  }
  if (fits) return Types{node.Type(kData)};
  return node.InvalidError(absl::StrCat("indices of type ", node.Type(kIndices).ToText(),
                                        " and updates of type ", node.Type(kUpdates).ToText(),
                                        " do not fit ", node.Type(kData).ToText()));
}

absl::Status DefineScatterElements(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(kData)));
  const std::vector<int64_t>&shape = node.Shape(kData), &given = node.Shape(kIndices);
  Updates updates{.axes = {"k"}, .extents = {given[axis]}, .number = "k"};
  updates.changed = StageWriter::Axes(shape);
  updates.changed_shape = shape;
  std::vector<std::string> element = updates.changed;
  element[axis] = "k";
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(d) == axis || given[d] == shape[d]) continue;
    updates.guards.push_back(absl::StrCat("0 <= ", element[d], " < ", given[d]));
  }
  const std::string place = PlaceAt(node, writer, kIndices, element, shape[axis]);
  updates.matches = absl::StrCat(Convert(node.Type(kIndices).dtype, DType::kI64, place),
                                 " == index(", updates.changed[axis], ")");
  updates.value = writer.In(kUpdates, element);
  return WriteResult(node, writer, updates);
}

// The number of dimensions that an index addresses.
int64_t IndexedDimensions(const NodeView& node) { return node.Shape(kIndices).back(); }

absl::StatusOr<Types> InferScatterND(const NodeView& node) {
  HONE_RETURN_IF_ERROR(CheckTypes(node));
  const std::vector<int64_t>&data = node.Shape(kData), &indices = node.Shape(kIndices);
  if (indices.empty() || indices.back() < 1 || indices.back() > node.Rank(kData)) {
    return node.InvalidError(absl::StrCat("indices of type ", node.Type(kIndices).ToText(),
                                          " do not fit ", node.Type(kData).ToText()));
  }
  if (node.IsConstant(kIndices)) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.Ints(kIndices));
    for (size_t i = 0; i < given.size(); ++i) {
      const int64_t extent = data[i % static_cast<size_t>(indices.back())];
      if (-extent <= given[i] && given[i] < extent) continue;
      return node.InvalidError(absl::StrCat("index ", given[i], " of ", extent, " elements"));
    }
  }
  std::vector<int64_t> wanted(indices.begin(), indices.end() - 1);
  wanted.insert(wanted.end(), data.begin() + indices.back(), data.end());
  if (node.Shape(kUpdates) == wanted) return Types{node.Type(kData)};
  return node.InvalidError(absl::StrCat("updates are ", node.Type(kUpdates).ToText(),
                                        " instead of ",
                                        TensorType{node.Type(kData).dtype, wanted}.ToText()));
}

absl::Status DefineScatterND(const NodeView& node, StageWriter& writer) {
  const std::vector<int64_t>&shape = node.Shape(kData), &given = node.Shape(kIndices);
  const int64_t indexed = IndexedDimensions(node);
  const std::vector<std::string> axes = StageWriter::Axes(shape);
  Updates updates;
  std::vector<std::pair<int64_t, std::string>> number;
  int64_t stride = 1;
  for (size_t d = given.size() - 1; d-- > 0;) {
    const std::string axis = absl::StrCat("k", d);
    updates.axes.insert(updates.axes.begin(), axis);
    updates.extents.insert(updates.extents.begin(), given[d]);
    number.emplace_back(stride, axis);
    stride *= given[d];
  }
  updates.number = number.empty() ? "0" : Affine(number, 0);
  std::vector<std::string> matches;
  for (int64_t d = 0; d < indexed; ++d) {
    std::vector<std::string> element = updates.axes;
    element.push_back(absl::StrCat(d));
    const std::string place = PlaceAt(node, writer, kIndices, element, shape[d]);
    matches.push_back(absl::StrCat(Convert(node.Type(kIndices).dtype, DType::kI64, place),
                                   " == index(", axes[d], ")"));
    updates.changed.push_back(axes[d]);
    updates.changed_shape.push_back(shape[d]);
  }
  updates.matches = absl::StrJoin(matches, " and ");
  std::vector<std::string> element = updates.axes;
  element.insert(element.end(), axes.begin() + indexed, axes.end());
  if (element.empty()) element = {"0"};
  updates.value = writer.In(kUpdates, element);
  return WriteResult(node, writer, updates);
}

constexpr absl::string_view kScatterLimits =
    "numbers; each element looks through the updates of its row";

// The positions of tokens that a RotaryEmbedding or a TensorScatter reads.
std::vector<IndexRange> PositionRanges(const NodeView& node) {
  const bool rotates = node.node().op == "RotaryEmbedding";
  const int positions = rotates ? 3 : 2;
  if (!node.Has(positions) || node.IsConstant(positions)) return {};
  if (rotates) {
    return {{node.node().inputs[positions], node.Shape(1)[0], 0, 1, /*from_end=*/false}};
  }
  if (node.String("mode", "linear").value_or("") != "linear") return {};
  const int64_t axis = node.AxisAttribute("axis", -2, node.Rank(0)).value_or(0);
  return {{node.node().inputs[positions], node.Shape(0)[axis] - node.Shape(1)[axis] + 1, 0, 1,
           /*from_end=*/false}};
}

}  // namespace

std::vector<IndexRange> IndexRanges(const Graph& graph, const Node& node) {
  if (node.op == "RotaryEmbedding" || node.op == "TensorScatter") {
    return PositionRanges(NodeView(graph, node));
  }
  if (node.op == "ReverseSequence") {
    const NodeView view(graph, node);
    if (view.IsConstant(1)) return {};
    const int64_t time = view.Int("time_axis", 0).value_or(0);
    return {{node.inputs[1], view.Shape(0)[time] + 1, 0, 1, /*from_end=*/false}};
  }
  const bool by_axis =
      node.op == "Gather" || node.op == "GatherElements" || node.op == "ScatterElements";
  if (!by_axis && node.op != "ScatterND") return {};
  const NodeView view(graph, node);
  const ValueId indices = node.inputs[1];
  if (view.IsConstant(1)) return {};
  if (by_axis) {
    const int64_t axis = view.AxisAttribute("axis", 0, view.Rank(0)).value_or(0);
    return {{indices, view.Shape(0)[axis]}};
  }
  std::vector<IndexRange> ranges;
  const int64_t columns = view.Shape(1).back();
  for (int64_t c = 0; c < columns; ++c) ranges.push_back({indices, view.Shape(0)[c], c, columns});
  return ranges;
}

absl::Span<const OperatorDef> GatherScatterOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Gather", 2, 2, InferGather, DefineGather, "i32 or i64 indices, checked"},
      {"GatherElements", 2, 2, InferGatherElements, DefineGatherElements,
       "i32 or i64 indices, checked"},
      {"OneHot", 3, 3, InferOneHot, DefineOneHot, "a constant depth"},
      {"ReverseSequence", 2, 2, InferReverseSequence, DefineReverseSequence},
      {"ScatterElements", 3, 3, InferScatterElements, DefineScatterElements, kScatterLimits},
      {"ScatterND", 3, 3, InferScatterND, DefineScatterND, kScatterLimits},
  };
  return kOperators;
}

}  // namespace hone::graph
