#include <algorithm>
#include <vector>

#include "client/network/graph/op/layout.h"
#include "client/network/graph/partition/rules.h"

namespace hone::graph {
namespace {

// A convolution with at most this many channels reads an image that has its channels first, [n, c,
// h, w], as fast as one that has them last.
constexpr int64_t kMaxChannelsOfPlanes = 4;

void FuseTransposition(Fusion& fusion, int node) {
  const ValueId result = fusion.graph().nodes[node].outputs[0];
  std::vector<int> nodes = fusion.Readers(result);
  if (!fusion.ResultOf(node)) return;
  const bool fits = std::all_of(nodes.begin(), nodes.end(), [&](int reader) {
    return fusion.InOneGroup(reader, nodes[0]) &&
           (fusion.kind(reader) == NodeKind::kElementwise || ReadsAnyOrder(fusion, reader, result));
  });
  nodes.push_back(node);
  if (fits) fusion.Merge(nodes);
}

void FuseWidening(Fusion& fusion, int node) {
  const int reader = fusion.SoleReader(fusion.graph().nodes[node].outputs[0]);
  if (reader < 0) return;
  if (fusion.kind(reader) == NodeKind::kElementwise || fusion.kind(reader) == NodeKind::kAnchor) {
    fusion.Merge({node, reader});
  }
}

}  // namespace

bool Widens(const Fusion& fusion, int node) {
  const std::vector<ValueId>& inputs = fusion.graph().nodes[node].inputs;
  if (inputs.empty() || inputs[0] == kNoValue) return false;
  return fusion.kind(node) == NodeKind::kElementwise &&
         ir::DTypeBytes(fusion.graph().value(inputs[0]).type.dtype) <
             ir::DTypeBytes(fusion.TypeOf(node).dtype);
}

bool IsProduct(const Fusion& fusion, int node) {
  return fusion.graph().nodes[node].op == "MatMul" || fusion.graph().nodes[node].op == "Gemm";
}

bool ReadsAnyOrder(const Fusion& fusion, int node, ValueId operand) {
  if (IsProduct(fusion, node)) return true;
  const Node& reader = fusion.graph().nodes[node];
  if (!HasKernels(reader.op) || reader.inputs[0] != operand) return false;
  if (!reader.attributes.contains(kChannelsLast)) return false;
  return fusion.graph().value(operand).type.shape.back() <= kMaxChannelsOfPlanes;
}

void FuseOperands(Fusion& fusion) {
  for (size_t i = 0; i < fusion.graph().nodes.size(); ++i) {
    const int n = static_cast<int>(i);
    if (!fusion.IsAlone(n)) continue;
    if (fusion.kind(n) == NodeKind::kTransposition) FuseTransposition(fusion, n);
    if (Widens(fusion, n)) FuseWidening(fusion, n);
  }
}

}  // namespace hone::graph
