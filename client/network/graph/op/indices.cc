#include "client/network/graph/op/indices.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"

namespace hone::graph {

using ir::DType;

absl::Status NeedIndices(const NodeView& node, int input) {
  const DType dtype = node.Type(input).dtype;
  if (dtype == DType::kI32 || dtype == DType::kI64) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("indices are ", node.Type(input).ToText()));
}

absl::Status CheckConstantIndices(const NodeView& node, int input, int64_t extent) {
  if (!node.IsConstant(input)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, node.Ints(input));
  for (const int64_t index : indices) {
    if (index < -extent || index >= extent) {
      return node.InvalidError(absl::StrCat("index ", index, " of ", extent, " elements"));
    }
  }
  return absl::OkStatus();
}

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

std::vector<IndexRange> IndexRanges(const Graph& graph, const Node& node) {
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

}  // namespace hone::graph
