#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

// A Reshape, Transpose and Reshape that shuffle the channels of an image: channel c of the result
// is channel c % groups · channels / groups + c / groups of the image.
struct Shuffle {
  int split, exchange, join;  // the nodes
  ValueId image, result;
  int64_t channels, groups;
};

// Returns the shuffle that ends with this node.
std::optional<Shuffle> ShuffleThatEndsAt(const Graph& graph, int join) {
  const Node& last = graph.nodes[join];
  if (last.op != "Reshape") return std::nullopt;
  const int exchange = PrivateProducer(graph, last.inputs[0]);
  if (exchange < 0 || graph.nodes[exchange].op != "Transpose") return std::nullopt;
  const int split = PrivateProducer(graph, graph.nodes[exchange].inputs[0]);
  if (split < 0 || graph.nodes[split].op != "Reshape") return std::nullopt;
  const ValueId image = graph.nodes[split].inputs[0], result = last.outputs[0];
  const Ints& shape = graph.value(image).type.shape;
  const Ints& parts = graph.value(graph.nodes[split].outputs[0]).type.shape;
  if (shape.size() < 3 || parts.size() < 4 || graph.value(result).type.shape != shape)
    return std::nullopt;
  if (parts[0] != shape[0] || parts[1] * parts[2] != shape[1]) return std::nullopt;
  Ints exchanged(parts.size());
  for (size_t d = 0; d < parts.size(); ++d) exchanged[d] = static_cast<int64_t>(d);
  std::swap(exchanged[1], exchanged[2]);
  const auto order = NodeView(graph, graph.nodes[exchange]).IntList("perm", {});
  if (!order.ok() || *order != exchanged) return std::nullopt;
  return Shuffle{split, exchange, join, image, result, shape[1], parts[1]};
}

// Whether the node computes each element from one channel of its first input, in the same way for
// all channels.
bool IsEqualForAllChannels(const Graph& graph, const Node& node) {
  static constexpr absl::string_view kOperators[] = {
      "AveragePool", "Clip",    "Elu",     "HardSigmoid", "HardSwish",
      "LeakyRelu",   "MaxPool", "Sigmoid", "Relu",        "Tanh"};
  return std::count(std::begin(kOperators), std::end(kOperators), node.op) > 0 &&
         !NodeView(graph, node).WantsOutput(1);
}

// Whether the node only reads an image, as the image of a convolution.
bool ReadsImage(const Node& node, ValueId image) {
  return node.inputs[0] == image && std::count(node.inputs.begin(), node.inputs.end(), image) == 1;
}

// Whether the node convolves each channel on its own with constant weights.
bool IsDepthwise(const Graph& graph, const Node& node, int64_t channels) {
  const NodeView view(graph, node);
  return node.op == "Conv" && view.Int("group", 1).value_or(0) == channels &&
         view.Shape(1)[0] == channels && view.IsConstant(1) && (!view.Has(2) || view.IsConstant(2));
}

bool CanReadShuffled(const Graph& graph, const Node& node, ValueId image) {
  return node.op == "Conv" && ReadsImage(node, image) && NodeView(graph, node).Shape(1)[1] > 1 &&
         !node.attributes.contains(kShuffledGroups) && !node.attributes.contains(kChannelsLast);
}

// Finds the nodes between a shuffle and the convolutions that read its channels. Returns nullopt
// if another node reads them.
struct Readers {
  std::vector<int> between, convolutions;
};
std::optional<Readers> ReadersOf(const Graph& graph, const Shuffle& shuffle) {
  const std::vector<std::vector<int>> consumers = graph.Consumers();
  Readers found;
  for (ValueId image = shuffle.result;;) {
    const std::vector<int>& readers = consumers[image];
    if (IsOutput(graph, image) || readers.empty()) return std::nullopt;
    if (std::all_of(readers.begin(), readers.end(),
                    [&](int n) { return CanReadShuffled(graph, graph.nodes[n], image); })) {
      found.convolutions = readers;
      return found;
    }
    const Node& node = graph.nodes[readers[0]];
    const bool passes =
        readers.size() == 1 && ReadsImage(node, image) &&
        (IsEqualForAllChannels(graph, node) || IsDepthwise(graph, node, shuffle.channels));
    if (!passes) return std::nullopt;
    found.between.push_back(readers[0]);
    image = node.outputs[0];
  }
}

// Gives the channels of a constant, its first dimension, the order that they have before the
// shuffle.
ValueId Unshuffled(Graph& graph, ValueId constant, const Shuffle& shuffle) {
  const Ints shape = graph.value(constant).type.shape;
  Ints parts = {shuffle.channels / shuffle.groups, shuffle.groups}, order = {1, 0}, same;
  for (size_t d = 1; d < shape.size(); ++d) {
    parts.push_back(shape[d]);
    order.push_back(static_cast<int64_t>(d) + 1);
  }
  for (size_t d = 0; d < shape.size(); ++d) same.push_back(static_cast<int64_t>(d));
  return AddPermuted(graph, AddPermuted(graph, constant, parts, order), shape, same);
}

}  // namespace

absl::StatusOr<bool> FoldShuffles(Graph& graph) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto shuffle = ShuffleThatEndsAt(graph, static_cast<int>(n));
    if (!shuffle) continue;
    const auto readers = ReadersOf(graph, *shuffle);
    if (!readers) continue;
    for (const int reader : readers->convolutions)
      graph.nodes[reader].attributes[kShuffledGroups] = shuffle->groups;
    for (const int node : readers->between) {
      if (graph.nodes[node].op != "Conv") continue;
      for (size_t i = 1; i < graph.nodes[node].inputs.size(); ++i) {
        if (graph.nodes[node].inputs[i] == kNoValue) continue;
        const ValueId unshuffled = Unshuffled(graph, graph.nodes[node].inputs[i], *shuffle);
        graph.nodes[node].inputs[i] = unshuffled;
      }
    }
    for (Node& node : graph.nodes)
      std::replace(node.inputs.begin(), node.inputs.end(), shuffle->result, shuffle->image);
    for (const int node : {shuffle->split, shuffle->exchange, shuffle->join})
      MarkRemoved(graph.nodes[node]);
  }
  return EraseRemoved(graph);
}

}  // namespace hone::graph
