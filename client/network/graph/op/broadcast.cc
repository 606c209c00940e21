#include "client/network/graph/op/broadcast.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::graph {

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
