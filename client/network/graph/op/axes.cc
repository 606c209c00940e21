#include "client/network/graph/op/axes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
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

}  // namespace hone::graph
