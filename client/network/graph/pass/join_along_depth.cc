#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/pass/channels_last.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

// A Concat and the nodes after it whose images get its parts along a new dimension.
struct Joined {
  int64_t parts = 0;
  std::vector<int> inner;  // nodes that read joined images and compute joined images
  std::vector<int> ends;   // convolutions, which read all parts of a joined image
  std::vector<int>
      after;  // elementwise nodes after an end, each the only reader of the result before it
};

// The number of parts of a Concat, or 0 if it does not join equal images of one sample along the
// channels.
int64_t PartsOf(const Graph& graph, const Node& node) {
  const NodeView view(graph, node);
  if (node.op != "Concat" || node.inputs.size() < 2 || view.Rank(0) != 4) return 0;
  if (view.AxisAttribute("axis", 0, 4).value_or(0) != 3 || view.Shape(0)[0] != 1) return 0;
  const bool equal = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return !graph.IsConstant(id) && graph.value(id).type == view.Type(0);
  });
  return equal ? static_cast<int64_t>(node.inputs.size()) : 0;
}

bool HasPlainPads(const NodeView& view) {
  const std::string pads = view.String("auto_pad", "NOTSET").value_or("");
  return (pads == "NOTSET" || pads.empty()) && view.Int("ceil_mode", 0).value_or(1) == 0;
}

bool CanEnd(const Graph& graph, const Node& node, ValueId image) {
  const NodeView view(graph, node);
  return node.op == "Conv" && node.attributes.contains(kChannelsLast) && node.inputs[0] == image &&
         view.IsConstant(1) && view.Int("group", 1).value_or(0) == 1 &&
         !node.attributes.contains(kShuffledGroups) && HasPlainPads(view);
}

bool CanBeInner(const Graph& graph, const Node& node) {
  const NodeView view(graph, node);
  if (node.op == "Relu") return true;
  return (node.op == "MaxPool" || node.op == "AveragePool") &&
         node.attributes.contains(kChannelsLast) && HasPlainPads(view);
}

// Whether the node computes each element from that of its first input alone, which is `image`.
bool IsUnary(const Graph& graph, const Node& node, LayoutRole role, ValueId image) {
  const auto is_single = [&](ValueId id) {
    return id == kNoValue || graph.value(id).type.elements() == 1;
  };
  return role == LayoutRole::kElementwise && node.outputs.size() == 1 && node.inputs[0] == image &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(), is_single);
}

// Finds the nodes to rewrite. nullopt if a node reads the joined image in a way that is not listed
// in Joined.
std::optional<Joined> Follow(const Graph& graph, const std::vector<LayoutRole>& roles, int concat) {
  Joined joined{.parts = PartsOf(graph, graph.nodes[concat])};
  if (joined.parts == 0) return std::nullopt;
  const std::vector<std::vector<int>> readers = graph.Consumers();
  std::vector<ValueId> images = {graph.nodes[concat].outputs[0]};
  for (size_t i = 0; i < images.size(); ++i) {
    const ValueId image = images[i];
    if (IsOutput(graph, image)) return std::nullopt;
    for (const int reader : readers[image]) {
      const Node& node = graph.nodes[reader];
      if (CanEnd(graph, node, image)) {
        joined.ends.push_back(reader);
        // Otherwise the reshape of the convolution's result would separate these nodes from it.
        ValueId result = node.outputs[0];
        while (readers[result].size() == 1 && !IsOutput(graph, result)) {
          const int after = readers[result][0];
          if (!IsUnary(graph, graph.nodes[after], roles[after], result)) break;
          joined.after.push_back(after);
          result = graph.nodes[after].outputs[0];
        }
      } else if (CanBeInner(graph, node)) {
        joined.inner.push_back(reader);
        images.push_back(node.outputs[0]);
      } else {
        return std::nullopt;
      }
    }
  }
  return joined;
}

class JoinWriter {
 public:
  explicit JoinWriter(Graph& graph) : graph_(graph) {}

  void Write(int concat, const Joined& joined) {
    const std::set<int> inner(joined.inner.begin(), joined.inner.end());
    const std::set<int> ends(joined.ends.begin(), joined.ends.end());
    const std::set<int> after(joined.after.begin(), joined.after.end());
    parts_ = joined.parts;
    const std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
      if (n == concat) {
        AddConcat(nodes[n]);
      } else if (inner.contains(n)) {
        AddInner(nodes[n]);
      } else if (ends.contains(n)) {
        AddEnd(nodes[n]);
      } else if (after.contains(n)) {
        AddAfter(nodes[n]);
      } else {
        graph_.nodes.push_back(nodes[n]);
      }
    }
  }

 private:
  ValueId AddReshape(ValueId from, ValueId to) {
    const std::string name = graph_.value(to).name;
    const ValueId shape =
        AddInts(graph_, absl::StrCat(name, ".shape"), Ints(graph_.value(to).type.shape));
    graph_.nodes.push_back({absl::StrCat(name, ".reshape"), "Reshape", {from, shape}, {to}, {}});
    return to;
  }

  ValueId AddImage(ValueId like, Ints shape) {
    const Value& value = graph_.value(like);
    const TensorType type{value.type.dtype, std::move(shape)};
    return graph_.AddValue(FreshName(graph_, absl::StrCat(value.name, ".depth")), type);
  }

  // [1, h, w, parts·c] → [1, parts, h, w, c].
  ValueId AddJoined(ValueId image) {
    const Ints& shape = graph_.value(image).type.shape;
    return joined_[image] = AddImage(image, {1, parts_, shape[1], shape[2], shape[3] / parts_});
  }

  void AddConcat(Node node) {
    for (ValueId& part : node.inputs) {
      const Ints& shape = graph_.value(part).type.shape;
      part = AddReshape(part, AddImage(part, {1, 1, shape[1], shape[2], shape[3]}));
    }
    node.attributes["axis"] = int64_t{1};
    node.outputs[0] = AddJoined(node.outputs[0]);
    graph_.nodes.push_back(std::move(node));
  }

  // Gives the window the extent `depth` in the first dimension.
  void AddDepth(Node& node, int64_t depth) {
    const NodeView view(graph_, node);
    const auto extend = [&](const char* name, int64_t first, Ints fallback) {
      Ints list = view.IntList(name, fallback).value_or(fallback);
      if (list.empty()) return;
      if (list.size() == 4) list.insert(list.begin() + 2, first);  // pads: begins, then ends
      list.insert(list.begin(), first);
      node.attributes[name] = list;
    };
    extend("kernel_shape", depth, {});
    extend("strides", 1, {1, 1});
    extend("dilations", 1, {1, 1});
    extend("pads", 0, {0, 0, 0, 0});
  }

  void AddInner(Node node) {
    node.inputs[0] = joined_.at(node.inputs[0]);
    if (node.op != "Relu") AddDepth(node, 1);
    node.outputs[0] = AddJoined(node.outputs[0]);
    graph_.nodes.push_back(std::move(node));
  }

  void AddEnd(Node node) {
    node.inputs[0] = joined_.at(node.inputs[0]);
    const Ints kernel = graph_.value(node.inputs[1]).type.shape;  // [kh, kw, ci, co]
    node.inputs[1] =
        AddPermuted(graph_, node.inputs[1],
                    {kernel[0], kernel[1], parts_, kernel[2] / parts_, kernel[3]}, {2, 0, 1, 3, 4});
    AddDepth(node, parts_);
    AddReshaped(std::move(node));
  }

  void AddAfter(Node node) {
    node.inputs[0] = deep_.at(node.inputs[0]);
    AddReshaped(std::move(node));
  }

  // Adds a node whose result is [1, 1, h, w, c], and then reshaped to [1, h, w, c].
  void AddReshaped(Node node) {
    const ValueId result = node.outputs[0];
    const Ints& shape = graph_.value(result).type.shape;
    node.outputs[0] = AddImage(result, {1, 1, shape[1], shape[2], shape[3]});
    deep_[result] = node.outputs[0];
    graph_.nodes.push_back(node);
    AddReshape(node.outputs[0], result);
  }

  Graph& graph_;
  int64_t parts_ = 0;
  std::map<ValueId, ValueId> joined_;  // joined images, by the image that each replaces
  std::map<ValueId, ValueId> deep_;    // results [1, 1, h, w, c], by the image that each replaces
};

}  // namespace

absl::StatusOr<bool> JoinAlongDepth(Graph& graph) {
  bool changed = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (PartsOf(graph, graph.nodes[n]) == 0) continue;
    const auto joined = Follow(graph, LayoutRoles(graph), static_cast<int>(n));
    if (!joined) continue;
    JoinWriter(graph).Write(static_cast<int>(n), *joined);
    changed = true;
  }
  return changed;
}

}  // namespace hone::graph
