#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/indices.h"
#include "common/base/status_macros.h"

// Operators that change elements of a tensor at computed indices. A stage computes every element of
// its result once, so each element searches for its updates.
namespace hone::graph {
namespace {

using ir::DType;

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

}  // namespace

absl::Span<const OperatorDef> ScatterOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"ScatterElements", 3, 3, InferScatterElements, DefineScatterElements, kScatterLimits},
      {"ScatterND", 3, 3, InferScatterND, DefineScatterND, kScatterLimits},
  };
  return kOperators;
}

}  // namespace hone::graph
