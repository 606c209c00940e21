#include "common/graph/pass/edit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/graph/node_view.h"

namespace hone::graph {
namespace {

bool IsOutput(const Graph& graph, ValueId id) {
  return std::count(graph.outputs.begin(), graph.outputs.end(), id) > 0;
}

ValueId Add(Graph& graph, const std::string& name, const TensorType& type,
            const std::vector<ir::Scalar>& elements) {
  const auto is_taken = [&](const std::string& candidate) {
    return std::any_of(graph.values.begin(), graph.values.end(),
                       [&](const Value& value) { return value.name == candidate; });
  };
  std::string fresh = name;
  for (int number = 2; is_taken(fresh); ++number) fresh = absl::StrCat(name, ".", number);
  return graph.AddConstant(fresh, type, ConstantData(Encode(type, elements)));
}

}  // namespace

bool ReplaceBy(Graph& graph, int node, ValueId value) {
  const ValueId result = graph.nodes[node].outputs[0];
  const bool rename = IsOutput(graph, result);
  if (rename) {
    const bool is_input = std::count(graph.inputs.begin(), graph.inputs.end(), value) > 0;
    if (is_input || graph.IsConstant(value) || IsOutput(graph, value)) return false;
  }
  MarkRemoved(graph.nodes[node]);
  const ValueId from = rename ? value : result, to = rename ? result : value;
  for (Node& other : graph.nodes) {
    std::replace(other.inputs.begin(), other.inputs.end(), from, to);
    if (rename) std::replace(other.outputs.begin(), other.outputs.end(), from, to);
  }
  return true;
}

void MarkRemoved(Node& node) { node = Node(); }

bool IsRemoved(const Node& node) { return node.op.empty(); }

bool EraseRemoved(Graph& graph) { return std::erase_if(graph.nodes, IsRemoved) > 0; }

ValueId AddConstant(Graph& graph, const std::string& name, const TensorType& type,
                    const std::vector<double>& elements) {
  return Add(graph, name, type, std::vector<ir::Scalar>(elements.begin(), elements.end()));
}

ValueId AddInts(Graph& graph, const std::string& name, const std::vector<int64_t>& elements) {
  return Add(graph, name, {ir::DType::kI64, {static_cast<int64_t>(elements.size())}},
             std::vector<ir::Scalar>(elements.begin(), elements.end()));
}

std::vector<double> Reals(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  std::vector<double> reals;
  for (const ir::Scalar& element : Decode(value.type, value.constant->bytes())) {
    reals.push_back(element.real());
  }
  return reals;
}

int PrivateProducer(const Graph& graph, ValueId id) {
  if (id == kNoValue || IsOutput(graph, id)) return -1;
  int readers = 0, producer = -1;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    readers += std::count(node.inputs.begin(), node.inputs.end(), id) > 0 ? 1 : 0;
    if (std::count(node.outputs.begin(), node.outputs.end(), id) > 0) {
      producer = static_cast<int>(n);
    }
  }
  return readers == 1 ? producer : -1;
}

}  // namespace hone::graph
