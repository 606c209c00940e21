#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/operator_def.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// More work than this takes the interpreter minutes. FoldCost() says what is counted.
constexpr double kMaxCost = 1 << 26;

}  // namespace

absl::StatusOr<bool> FoldConstants(Graph& graph, int64_t max_elements) {
  for (Node& node : graph.nodes) {
    const bool fits = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return id == kNoValue || graph.value(id).type.elements() <= max_elements;
    });
    if (!fits || !CanFold(graph, node)) continue;
    const auto types = InferTypes(NodeView(graph, node));
    if (!types.ok() || FoldCost(graph, node, *types) > kMaxCost) continue;
    const auto folded = Fold(graph, node);
    if (!folded.ok()) continue;
    auto data = folded->begin();
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) graph.values[id].constant = *data++;
    }
    MarkRemoved(node);
  }
  return EraseRemoved(graph);
}

namespace {

// Marks the values that the outputs of the graph depend on.
std::vector<bool> FindNeeded(const Graph& graph) {
  std::vector<bool> needed(graph.values.size());
  for (const ValueId id : graph.outputs) needed[id] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool runs = std::any_of(node->outputs.begin(), node->outputs.end(),
                                  [&](ValueId id) { return id != kNoValue && needed[id]; });
    if (!runs) continue;
    for (const ValueId id : node->inputs) {
      if (id != kNoValue) needed[id] = true;
    }
  }
  return needed;
}

void Renumber(std::vector<ValueId>& ids, const std::vector<ValueId>& numbers) {
  for (ValueId& id : ids) {
    if (id != kNoValue) id = numbers[id];
  }
}

}  // namespace

absl::StatusOr<bool> RemoveDead(Graph& graph) {
  std::vector<bool> needed = FindNeeded(graph);
  bool changed = false;
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.outputs) {
      if (id == kNoValue || needed[id]) continue;
      id = kNoValue;
      changed = true;
    }
  }
  changed |= std::erase_if(graph.nodes, [](const Node& node) {
               return std::all_of(node.outputs.begin(), node.outputs.end(),
                                  [](ValueId id) { return id == kNoValue; });
             }) > 0;
  for (const ValueId id : graph.inputs) needed[id] = true;
  std::vector<ValueId> numbers(graph.values.size(), kNoValue);
  std::vector<Value> values;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    if (!needed[id]) continue;
    numbers[id] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[id]));
  }
  changed |= values.size() < graph.values.size();
  graph.values = std::move(values);
  for (Node& node : graph.nodes) {
    Renumber(node.inputs, numbers);
    Renumber(node.outputs, numbers);
  }
  Renumber(graph.inputs, numbers);
  Renumber(graph.outputs, numbers);
  return changed;
}

namespace {

// Whether the result of an operator is its input if their types are equal.
bool KeepsElements(absl::string_view op) {
  static constexpr absl::string_view kOperators[] = {"Identity",  "Dropout", "Cast",
                                                     "Reshape",   "Flatten", "Squeeze",
                                                     "Unsqueeze", "Expand",  "Tile"};
  return std::count(std::begin(kOperators), std::end(kOperators), op) > 0;
}

// Whether an input is absent, or a constant whose elements all have this value.
absl::StatusOr<bool> HasOnly(const NodeView& node, int input, int64_t element) {
  if (!node.Has(input)) return true;
  if (!node.IsConstant(input)) return false;
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> ints, node.Ints(input));
  return std::all_of(ints.begin(), ints.end(), [&](int64_t each) { return each == element; });
}

// Whether a permutation keeps the order of the dimensions with more than one element.
absl::StatusOr<bool> KeepsOrder(const NodeView& node) {
  std::vector<int64_t> reversed;
  for (int64_t d = node.Rank(0) - 1; d >= 0; --d) reversed.push_back(d);
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> permutation, node.IntList("perm", reversed));
  std::erase_if(permutation, [&](int64_t d) { return node.Shape(0)[d] == 1; });
  return std::is_sorted(permutation.begin(), permutation.end());
}

// REQUIRES: the only result has the type of the first input.
absl::StatusOr<bool> IsIdentity(const NodeView& node) {
  const absl::string_view op = node.node().op;
  if (KeepsElements(op)) return true;
  if (op == "Transpose") return KeepsOrder(node);
  if (op == "Pad") return HasOnly(node, 1, 0);
  if (op == "Slice") return HasOnly(node, 4, 1);
  return op == "Concat" && node.inputs() == 1;
}

}  // namespace

absl::StatusOr<bool> RemoveIdentity(Graph& graph) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.outputs.empty() || node.inputs.empty() || node.inputs[0] == kNoValue) continue;
    const auto is_wanted = [](ValueId id) { return id != kNoValue; };
    if (node.outputs[0] == kNoValue ||
        std::count_if(node.outputs.begin(), node.outputs.end(), is_wanted) != 1) {
      continue;
    }
    if (graph.value(node.inputs[0]).type != graph.value(node.outputs[0]).type) continue;
    HONE_ASSIGN_OR_RETURN(const bool is_identity, IsIdentity(NodeView(graph, node)));
    if (is_identity) ReplaceBy(graph, static_cast<int>(n), node.inputs[0]);
  }
  return EraseRemoved(graph);
}

namespace {

bool ChangesShape(const Node& node) {
  return node.op == "Reshape" || node.op == "Flatten" || node.op == "Squeeze" ||
         node.op == "Unsqueeze";
}

}  // namespace

absl::StatusOr<bool> MergeReshapes(Graph& graph) {
  bool changed = false;
  const std::vector<int> producers = graph.Producers();
  for (Node& node : graph.nodes) {
    if (!ChangesShape(node)) continue;
    const int producer = producers[node.inputs[0]];
    if (producer < 0 || !ChangesShape(graph.nodes[producer])) continue;
    const Value& result = graph.value(node.outputs[0]);
    if (result.type.elements() == 0) continue;  // Reshape gives a 0 in a shape another meaning
    const ValueId source = graph.nodes[producer].inputs[0];
    const ValueId shape = AddInts(graph, absl::StrCat(result.name, ".shape"),
                                  std::vector<int64_t>(result.type.shape));
    node = {node.name, "Reshape", {source, shape}, node.outputs, {}};
    changed = true;
  }
  return changed;
}

namespace {

absl::StatusOr<std::vector<int64_t>> PermutationOf(const Graph& graph, const Node& node) {
  const NodeView view(graph, node);
  std::vector<int64_t> reversed;
  for (int64_t d = view.Rank(0) - 1; d >= 0; --d) reversed.push_back(d);
  return view.IntList("perm", reversed);
}

}  // namespace

absl::StatusOr<bool> MergeTransposes(Graph& graph) {
  bool changed = false;
  const std::vector<int> producers = graph.Producers();
  for (Node& node : graph.nodes) {
    if (node.op != "Transpose") continue;
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> permutation, PermutationOf(graph, node));
    const int producer = producers[node.inputs[0]];
    if (producer >= 0 && graph.nodes[producer].op == "Transpose") {
      const Node& first = graph.nodes[producer];
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> before, PermutationOf(graph, first));
      for (int64_t& d : permutation) d = before[d];
      node.inputs[0] = first.inputs[0];
      node.attributes["perm"] = permutation;
      changed = true;
    }
    const Value& result = graph.value(node.outputs[0]);
    const std::vector<int64_t>& shape = graph.value(node.inputs[0]).type.shape;
    std::erase_if(permutation, [&](int64_t d) { return shape[d] == 1; });
    if (result.type.elements() == 0 || !std::is_sorted(permutation.begin(), permutation.end())) {
      continue;
    }
    const ValueId target = AddInts(graph, absl::StrCat(result.name, ".shape"),
                                   std::vector<int64_t>(result.type.shape));
    node = {node.name, "Reshape", {node.inputs[0], target}, node.outputs, {}};
    changed = true;
  }
  return changed;
}

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
