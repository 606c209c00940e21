#include <vector>

#include "client/network/graph/partition/rules.h"

namespace hone::graph {
namespace {

// The most nodes that may follow a product, the softmax included.
constexpr size_t kMaxNodes = 16;

// Appends the nodes from a product to a value. Each value on the way must have one reader. Returns
// false if there is no such path.
bool FindProduct(const Fusion& fusion, ValueId id, std::vector<int>& nodes) {
  if (id == kNoValue || fusion.SoleReader(id) < 0) return false;
  const int node = fusion.Producer(id);
  if (node < 0 || !fusion.IsAlone(node) || nodes.size() > kMaxNodes) return false;
  nodes.push_back(node);
  if (IsProduct(fusion, node)) return true;
  if (fusion.kind(node) == NodeKind::kElementwise) {
    for (const ValueId input : fusion.graph().nodes[node].inputs) {
      if (input == kNoValue) continue;
      if (fusion.graph().value(input).type.shape != fusion.TypeOf(node).shape) continue;
      if (FindProduct(fusion, input, nodes)) return true;
    }
  }
  nodes.pop_back();
  return false;
}

// Appends the nodes from a value to the product whose left operand is computed from it. Returns
// false if there is no such path.
bool FindReadingProduct(const Fusion& fusion, ValueId id, std::vector<int>& nodes) {
  while (true) {
    const int reader = fusion.SoleReader(id);
    if (reader < 0 || !fusion.IsAlone(reader)) return false;
    const Node& node = fusion.graph().nodes[reader];
    nodes.push_back(reader);
    if (IsProduct(fusion, reader)) return node.inputs[0] == id;
    if (fusion.kind(reader) != NodeKind::kElementwise) return false;
    if (fusion.TypeOf(reader).shape != fusion.graph().value(id).type.shape) return false;
    id = node.outputs[0];
  }
}

}  // namespace

void FuseAttention(Fusion& fusion) {
  for (size_t n = 0; n < fusion.graph().nodes.size(); ++n) {
    const Node& node = fusion.graph().nodes[n];
    if (node.op != "Softmax") continue;
    std::vector<int> nodes = {static_cast<int>(n)};
    if (FindProduct(fusion, node.inputs[0], nodes) &&
        FindReadingProduct(fusion, node.outputs[0], nodes)) {
      fusion.Merge(nodes);
    }
  }
}

}  // namespace hone::graph
