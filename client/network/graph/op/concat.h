#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_CONCAT_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_CONCAT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/network/graph/stage_writer.h"
#include "common/ir/cases.h"

namespace hone::graph {

// A part of a tensor along an axis, from index `begin` up to the next part. `value` returns the
// formula of an element, for an axis that counts from index `origin` of the joined tensor.
struct Part {
  int64_t begin;
  std::function<std::string(int64_t origin)> value;
};

// Returns a formula of the joined tensor's element at `axes`: a balanced tree of guards on
// axes[axis] selects the part. `shape` is that of the joined tensor. If there are more than `most`
// parts, groups of them are first joined in intermediate stages.
std::string Joined(StageWriter& writer, std::vector<Part> parts,
                   const std::vector<std::string>& axes, const std::vector<int64_t>& shape,
                   size_t axis, size_t most = ir::kMaxCases);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_CONCAT_H_
