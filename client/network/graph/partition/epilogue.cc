#include <vector>

#include "client/network/graph/partition/rules.h"

namespace hone::graph {
namespace {

// Whether a transposition should wait for the product that reads its result.
bool FeedsProduct(const Fusion& fusion, int node) {
  const int reader = fusion.SoleReader(fusion.graph().nodes[node].outputs[0]);
  return reader >= 0 && IsProduct(fusion, reader);
}

// Merges into a node's group the nodes after it that have the shape of its result.
void TakeEpilogue(Fusion& fusion, int node) {
  while (const auto result = fusion.ResultOf(node)) {
    const std::vector<int64_t>& shape = fusion.graph().value(*result).type.shape;
    const bool has_one_reader = fusion.Readers(*result).size() == 1;
    auto nodes = fusion.Enclosed(*result, [&](int follower) {
      if (!fusion.IsAlone(follower)) return false;
      if (fusion.kind(follower) == NodeKind::kTransposition) {
        return has_one_reader && !FeedsProduct(fusion, follower);
      }
      return fusion.kind(follower) == NodeKind::kElementwise && !Widens(fusion, follower) &&
             fusion.TypeOf(follower).shape == shape;
    });
    if (!nodes) return;
    nodes->push_back(node);
    if (!fusion.Merge(*nodes)) return;
  }
}

}  // namespace

void FuseEpilogues(Fusion& fusion) {
  for (int n = static_cast<int>(fusion.graph().nodes.size()) - 1; n >= 0; --n) {
    if (fusion.kind(n) == NodeKind::kAnchor) TakeEpilogue(fusion, n);
  }
}

void FuseChains(Fusion& fusion) {
  for (size_t i = 0; i < fusion.graph().nodes.size(); ++i) {
    const int n = static_cast<int>(i);
    if (fusion.kind(n) != NodeKind::kAlias) TakeEpilogue(fusion, n);
  }
}

}  // namespace hone::graph
