#include "client/network/graph/op/concat.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

std::string Tree(absl::Span<const Part> parts, const std::string& axis, int64_t origin) {
  if (parts.size() == 1) return parts[0].value(origin);
  const size_t middle = parts.size() / 2;
  return Guarded(Tree(parts.first(middle), axis, origin),
                 {absl::StrCat(axis, " < ", parts[middle].begin - origin)},
                 Tree(parts.subspan(middle), axis, origin));
}

}  // namespace

std::string Joined(StageWriter& writer, std::vector<Part> parts,
                   const std::vector<std::string>& axes, const std::vector<int64_t>& shape,
                   size_t axis, size_t most) {
  if (parts.size() <= most) return Tree(parts, axes[axis], 0);
  std::vector<Part> joined;
  for (size_t first = 0; first < parts.size(); first += most) {
    const size_t count = std::min(most, parts.size() - first);
    const int64_t begin = parts[first].begin;
    const int64_t end = first + count < parts.size() ? parts[first + count].begin : shape[axis];
    std::vector<int64_t> extents = shape;
    extents[axis] = end - begin;
    const std::string stage =
        writer.Stage("part", axes, extents,
                     Tree(absl::MakeSpan(parts).subspan(first, count), axes[axis], begin));
    joined.push_back({begin, [stage, axes, axis, begin](int64_t origin) {
                        std::vector<std::string> element = axes;
                        element[axis] = Offset(axes[axis], origin - begin);
                        return Element(stage, element);
                      }});
  }
  return Joined(writer, std::move(joined), axes, shape, axis, most);
}

namespace {

absl::StatusOr<Types> InferConcat(const NodeView& node) {
  if (!node.HasAttribute("axis")) return node.InvalidError("attribute 'axis' is missing");
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, node.inputs() - 1));
  std::vector<int64_t> shape = node.Shape(0);
  for (int i = 1; i < node.inputs(); ++i) {
    if (!node.Has(i)) return node.InvalidError(absl::StrCat("input ", i, " is missing"));
    std::vector<int64_t> other = node.Shape(i);
    const int64_t extent = axis < node.Rank(i) ? other[axis] : 0;
    if (axis < node.Rank(i)) other[axis] = shape[axis];
    if (other != shape) {
      return node.InvalidError(absl::StrCat("cannot join ", node.Type(0).ToText(), " and ",
                                            node.Type(i).ToText(), " along axis ", axis));
    }
    shape[axis] += extent;
  }
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::Status DefineConcat(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  std::vector<Part> parts;
  int64_t begin = 0;
  for (int i = 0; i < node.inputs(); ++i) {
    const int64_t extent = node.Shape(i)[axis];
    if (extent == 0) continue;
    parts.push_back({begin, [&writer, &axes, axis, begin, i](int64_t origin) {
                       std::vector<std::string> element = axes;
                       element[axis] = Offset(axes[axis], origin - begin);
                       return writer.In(i, element);
                     }});
    begin += extent;
  }
  const std::vector<int64_t>& shape = writer.OutputType(0).shape;
  writer.Output(0, axes, Joined(writer, std::move(parts), axes, shape, axis));
  return absl::OkStatus();
}

// The extents of Split's outputs: given, or as equal as possible.
absl::StatusOr<std::vector<int64_t>> Parts(const NodeView& node, int64_t extent) {
  HONE_ASSIGN_OR_RETURN(const int64_t count, node.Int("num_outputs", node.outputs()));
  if (!node.Has(1)) {
    if (count < 1 || count > std::max<int64_t>(extent, 1)) {
      return node.InvalidError(
          absl::StrCat("splits ", extent, " elements into ", count, " outputs; set num_outputs"));
    }
    const int64_t each = (extent + count - 1) / count;
    std::vector<int64_t> parts(count, each);
    parts.back() = extent - each * (count - 1);
    if (parts.back() >= 0) return parts;
    return node.InvalidError(absl::StrCat("splits ", extent, " elements into ", count, " parts"));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> parts, node.Ints(1));
  int64_t sum = 0;
  for (const int64_t part : parts) {
    if (part < 0 || part > extent) return node.InvalidError(absl::StrCat("a part is ", part));
    sum += part;
  }
  if (sum == extent) return parts;
  return node.InvalidError(absl::StrCat("the parts have ", sum, " elements of ", extent));
}

absl::StatusOr<Types> InferSplit(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const auto parts, Parts(node, node.Shape(0)[axis]));
  Types types(parts.size(), node.Type(0));
  for (size_t i = 0; i < parts.size(); ++i) types[i].shape[axis] = parts[i];
  return types;
}

absl::Status DefineSplit(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", 0, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const auto parts, Parts(node, node.Shape(0)[axis]));
  int64_t begin = 0;
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<std::string> element = axes;
    // A number, so that an outermost part of one element is at a constant place: a view.
    element[axis] = parts[i] == 1 ? absl::StrCat(begin) : Offset(axes[axis], begin);
    const int output = static_cast<int>(i);
    if (writer.WantsOutput(output)) writer.Output(output, axes, writer.In(0, element));
    begin += parts[i];
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> ConcatOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Concat", 1, -1, InferConcat, DefineConcat},
      {"Split", 1, 2, InferSplit, DefineSplit, "constant extents"},
  };
  return kOperators;
}

}  // namespace hone::graph
