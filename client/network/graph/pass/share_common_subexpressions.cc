#include <algorithm>
#include <map>
#include <tuple>

#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/digest.h"

namespace hone::graph {
namespace {

// A digest that is the same for equal constants, and rarely for others. It reads only parts of
// large constants, so that most of a weights file is not read.
Digest Sample(const ConstantData& constant) {
  if (constant.is_computed()) return constant.origin();
  constexpr size_t kPart = 1024, kParts = 2;  // the first and the last bytes
  const absl::string_view bytes = constant.bytes();
  if (bytes.size() <= kPart * kParts) return DigestOf(bytes);
  DigestBuilder sample;
  for (size_t p = 0; p < kParts; ++p) {
    sample.Add(bytes.substr((bytes.size() - kPart) / (kParts - 1) * p, kPart));
  }
  return sample.Finish();
}

bool AreEqual(const ConstantData& a, const ConstantData& b) {
  if (a.is_computed() || b.is_computed()) return a.origin() == b.origin();
  return a.bytes() == b.bytes();
}

// Makes all nodes read the first of equal constants.
bool ShareConstants(Graph& graph) {
  std::multimap<std::tuple<ir::DType, std::vector<int64_t>, Digest>, ValueId> firsts;
  std::vector<ValueId> first_of(graph.values.size());
  for (ValueId id = 0; static_cast<size_t>(id) < graph.values.size(); ++id) {
    const Value& value = graph.value(id);
    first_of[id] = id;
    if (!value.constant) continue;
    const auto key = std::make_tuple(value.type.dtype, value.type.shape, Sample(*value.constant));
    const auto [begin, end] = firsts.equal_range(key);
    const auto first = std::find_if(begin, end, [&](const auto& entry) {
      return AreEqual(*graph.value(entry.second).constant, *value.constant);
    });
    if (first == end) {
      firsts.emplace(key, id);
    } else {
      first_of[id] = first->second;
    }
  }
  bool changed = false;
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.inputs) {
      if (id == kNoValue || first_of[id] == id) continue;
      id = first_of[id];
      changed = true;
    }
  }
  return changed;
}

bool HasOneOutput(const Node& node) {
  return node.outputs.size() == 1 && node.outputs[0] != kNoValue;
}

}  // namespace

absl::StatusOr<bool> ShareCommonSubexpressions(Graph& graph) {
  const bool changed = ShareConstants(graph);
  using Key = std::tuple<std::string, std::vector<ValueId>, std::map<std::string, Attribute>>;
  std::map<Key, int> firsts;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    // A conversion to a wider type becomes a part of each reader, which is cheaper than storing its
    // result.
    if (!HasOneOutput(node) || node.op == "DequantizeLinear") continue;
    const auto [first, is_new] =
        firsts.emplace(Key(node.op, node.inputs, node.attributes), static_cast<int>(n));
    if (!is_new) ReplaceBy(graph, static_cast<int>(n), graph.nodes[first->second].outputs[0]);
  }
  return EraseRemoved(graph) || changed;
}

}  // namespace hone::graph
