#include "client/network/graph/pass/edit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "common/base/digest.h"

namespace hone::graph {
namespace {

ValueId Add(Graph& graph, const std::string& name, const TensorType& type,
            const std::vector<ir::Scalar>& elements) {
  return AddConstant(graph, name, type, ConstantData(Encode(type, elements)));
}

// Returns the bytes of a constant of this type with its dimensions permuted.
std::string PermutedBytes(const TensorType& type, absl::string_view bytes,
                          const std::vector<int64_t>& order) {
  if (ir::IsPacked(type.dtype)) {
    const TensorType whole{ir::LoadedAs(type.dtype), type.shape};
    const std::string permuted = PermutedBytes(whole, Encode(whole, Decode(type, bytes)), order);
    return Encode(type, Decode(whole, permuted));
  }
  const size_t rank = order.size();
  const auto size = static_cast<int64_t>(ir::DTypeBytes(type.dtype));
  std::vector<int64_t> strides(rank, size), steps(rank), extents(rank), at(rank, 0);
  for (size_t d = rank - 1; d > 0; --d) strides[d - 1] = strides[d] * type.shape[d];
  for (size_t d = 0; d < rank; ++d) {
    steps[d] = strides[order[d]];
    extents[d] = type.shape[order[d]];
  }
  std::string permuted;
  permuted.reserve(bytes.size());
  int64_t offset = 0;
  while (permuted.size() < bytes.size()) {
    permuted.append(bytes.data() + offset, size);
    for (size_t d = rank; d-- > 0;) {
      offset += steps[d];
      if (++at[d] < extents[d]) break;
      offset -= steps[d] * extents[d];
      at[d] = 0;
    }
  }
  return permuted;
}

}  // namespace

bool IsOutput(const Graph& graph, ValueId id) {
  return std::count(graph.outputs.begin(), graph.outputs.end(), id) > 0;
}

ValueId AddConstant(Graph& graph, const std::string& name, const TensorType& type,
                    ConstantData data) {
  return graph.AddConstant(FreshName(graph, name), type, std::move(data));
}

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

bool EraseRemoved(Graph& graph) {
  return std::erase_if(graph.nodes, [](const Node& node) { return node.op.empty(); }) > 0;
}

std::string FreshName(const Graph& graph, const std::string& name) {
  const auto is_taken = [&](const std::string& candidate) {
    return std::any_of(graph.values.begin(), graph.values.end(),
                       [&](const Value& value) { return value.name == candidate; });
  };
  std::string fresh = name;
  for (int number = 2; is_taken(fresh); ++number) fresh = absl::StrCat(name, ".", number);
  return fresh;
}

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

ValueId AddPermuted(Graph& graph, ValueId constant, const std::vector<int64_t>& shape,
                    const std::vector<int64_t>& order) {
  const Value value = graph.value(constant);
  const TensorType given{value.type.dtype, shape};
  TensorType type{.dtype = value.type.dtype};
  for (const int64_t d : order) type.shape.push_back(shape[d]);
  DigestBuilder recipe;
  recipe.Add("permuted").Add(value.constant->origin());
  for (const int64_t extent : shape) recipe.Add(extent);
  for (const int64_t d : order) recipe.Add(d);
  const auto compute = [given, order, data = *value.constant] {
    return PermutedBytes(given, data.bytes(), order);
  };
  return AddConstant(graph, absl::StrCat(value.name, ".permuted"), type,
                     ConstantData::Computed(recipe.Finish(), type.bytes(), compute));
}

}  // namespace hone::graph
