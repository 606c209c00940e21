#include "client/network/graph/op/joined.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/network/graph/op/formula.h"

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

}  // namespace hone::graph
