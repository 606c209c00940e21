#ifndef HONE_COMMON_GRAPH_OP_JOINED_H_
#define HONE_COMMON_GRAPH_OP_JOINED_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/graph/stage_writer.h"
#include "common/ir/cases.h"

namespace hone::graph {

// A part of a tensor along an axis, from place `begin` up to the next part. `value` gives an
// element of it where the axis is 0 at the place `origin` of the whole tensor.
struct Part {
  int64_t begin;
  std::function<std::string(int64_t origin)> value;
};

// The value of the part in which the axis, one of `axes`, is. `shape` is that of the whole tensor.
// Guards form a balanced tree. More than `most` parts are joined in stages of their own first.
std::string Joined(StageWriter& writer, std::vector<Part> parts,
                   const std::vector<std::string>& axes, const std::vector<int64_t>& shape,
                   size_t axis, size_t most = ir::kMaxCases);

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_OP_JOINED_H_
