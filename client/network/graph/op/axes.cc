#include "client/network/graph/op/axes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace hone::graph {

absl::StatusOr<int64_t> AxisOf(const NodeView& node, int64_t axis, int64_t rank) {
  if (-rank <= axis && axis < rank) return axis < 0 ? axis + rank : axis;
  return node.InvalidError(absl::StrCat("there is no axis ", axis, " in a tensor of rank ", rank));
}

absl::StatusOr<std::vector<int64_t>> AxesOf(const NodeView& node, std::vector<int64_t> axes,
                                            int64_t rank) {
  for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
    HONE_ASSIGN_OR_RETURN(*axis, AxisOf(node, *axis, rank));
    if (std::count(axes.begin(), axis, *axis) > 0) {
      return node.InvalidError(absl::StrCat("axis ", *axis, " occurs twice"));
    }
  }
  return axes;
}

absl::StatusOr<std::vector<int64_t>> AxesInput(const NodeView& node, int input, int64_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (!node.Has(input)) return axes;
  HONE_ASSIGN_OR_RETURN(axes, node.Ints(input));
  return AxesOf(node, std::move(axes), rank);
}

absl::StatusOr<std::vector<int64_t>> Broadcast(const NodeView& node, const std::vector<int64_t>& a,
                                               const std::vector<int64_t>& b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()));
  for (size_t d = 1; d <= shape.size(); ++d) {  // from the last dimension
    const int64_t x = d <= a.size() ? a[a.size() - d] : 1, y = d <= b.size() ? b[b.size() - d] : 1;
    if (x != y && x != 1 && y != 1) {
      return node.InvalidError(absl::StrCat("shapes [", absl::StrJoin(a, ", "), "] and [",
                                            absl::StrJoin(b, ", "), "] do not broadcast"));
    }
    shape[shape.size() - d] = x == 1 ? y : x;
  }
  return shape;
}

std::string BroadcastElement(StageWriter& writer, int input, const std::vector<int64_t>& shape,
                             const std::vector<std::string>& axes) {
  if (shape.empty()) return writer.In(input, {"0"});
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<std::string> indices(axes.end() - rank, axes.end());
  const std::vector<int64_t>& result = writer.OutputType(0).shape;
  for (int64_t d = 0; d < rank; ++d) {
    // An axis of extent 1 stays, so that a schedule sees that the stage is elementwise.
    if (shape[d] != result[result.size() - rank + d]) indices[d] = "0";
  }
  return writer.In(input, indices);
}

}  // namespace hone::graph
