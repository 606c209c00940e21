#include "client/network/graph/partition/rules.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "client/network/graph/op/gather_scatter.h"
#include "client/network/graph/op/window.h"

namespace hone::graph {
namespace {

// A convolution with at most this many channels reads an image that has its channels first, [n, c,
// h, w], as fast as one that has them last.
constexpr int64_t kMaxChannelsOfPlanes = 4;

// Whether the node converts its first input to a type with more bytes.
bool Widens(const Fusion& fusion, int node) {
  const std::vector<ValueId>& inputs = fusion.graph().nodes[node].inputs;
  if (inputs.empty() || inputs[0] == kNoValue) return false;
  return fusion.kind(node) == NodeKind::kElementwise &&
         ir::DTypeBytes(fusion.graph().value(inputs[0]).type.dtype) <
             ir::DTypeBytes(fusion.TypeOf(node).dtype);
}

// Whether the node is a product of matrices.
bool IsProduct(const Fusion& fusion, int node) {
  return fusion.graph().nodes[node].op == "MatMul" || fusion.graph().nodes[node].op == "Gemm";
}

// Whether the node reads an operand equally fast in any order of the operand's dimensions. This
// holds for products of matrices, and for an image with few channels that a convolution reads.
bool ReadsAnyOrder(const Fusion& fusion, int node, ValueId operand) {
  if (IsProduct(fusion, node)) return true;
  const Node& reader = fusion.graph().nodes[node];
  if (!HasKernels(reader.op) || reader.inputs[0] != operand) return false;
  if (!reader.attributes.contains(kChannelsLast)) return false;
  return fusion.graph().value(operand).type.shape.back() <= kMaxChannelsOfPlanes;
}

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
  const ValueId result = fusion.graph().nodes[node].outputs[0];
  const int reader = fusion.SoleReader(result);
  if (reader < 0) return;
  // Indices are checked in a tensor, before the step that reads them.
  for (const IndexRange& range : IndexRanges(fusion.graph(), fusion.graph().nodes[reader])) {
    if (range.indices == result) return;
  }
  const NodeKind kind = fusion.kind(reader);
  const bool is_operand = kind == NodeKind::kTransposition && !fusion.IsAlone(reader);
  if (kind == NodeKind::kElementwise || kind == NodeKind::kAnchor || is_operand) {
    fusion.Merge({node, reader});
  }
}

}  // namespace

void FuseOperands(Fusion& fusion) {
  const int nodes = static_cast<int>(fusion.graph().nodes.size());
  for (int n = 0; n < nodes; ++n) {
    const bool moves = fusion.kind(n) == NodeKind::kTransposition;
    if (moves && fusion.IsAlone(n)) FuseTransposition(fusion, n);
  }
  // Later, so that the conversion of a transposed operand joins the transposition.
  for (int n = 0; n < nodes; ++n) {
    if (fusion.IsAlone(n) && Widens(fusion, n)) FuseWidening(fusion, n);
  }
}

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

namespace {

using Shape = std::vector<int64_t>;

bool IsReduction(const Fusion& fusion, int node) {
  return fusion.kind(node) == NodeKind::kAnchor && fusion.IsAlone(node) &&
         absl::StartsWith(fusion.graph().nodes[node].op, "Reduce");
}

const Shape& InputShape(const Fusion& fusion, int node) {
  return fusion.graph().value(fusion.graph().nodes[node].inputs[0]).type.shape;
}

// Merges a reduction with the nodes that use its result: elementwise nodes that have the shape of
// the reduction's input or result, and other reductions from the same shape to the same shape.
void Grow(Fusion& fusion, int reduction) {
  const Shape& full = InputShape(fusion, reduction);
  const Shape& reduced = fusion.TypeOf(reduction).shape;
  const auto allowed = [&](int node) {
    const Shape& shape = fusion.TypeOf(node).shape;
    if (IsReduction(fusion, node)) {
      return InputShape(fusion, node) == full && shape == reduced;
    }
    return fusion.kind(node) == NodeKind::kElementwise && fusion.IsAlone(node) &&
           (shape == full || shape == reduced);
  };
  while (const auto result = fusion.ResultOf(reduction)) {
    auto nodes = fusion.Enclosed(*result, allowed);
    if (!nodes) return;
    nodes->push_back(reduction);
    if (!fusion.Merge(*nodes)) return;
  }
}

}  // namespace

void FuseNormalizations(Fusion& fusion) {
  for (size_t n = 0; n < fusion.graph().nodes.size(); ++n) {
    if (IsReduction(fusion, static_cast<int>(n))) Grow(fusion, static_cast<int>(n));
  }
}

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
