#ifndef HONE_CLIENT_NETWORK_ONNX_BODY_ITEM_H_
#define HONE_CLIENT_NETWORK_ONNX_BODY_ITEM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// What a name of a model stands for while the model is read: a tensor, a sequence of tensors, or an
// optional value. Sequences and optional values leave nothing in the graph, because their structure
// is known.
struct Item {
  graph::ValueId tensor = graph::kNoValue;  // kNoValue: the item is absent, or something else
  std::optional<std::vector<graph::ValueId>> sequence;
  bool is_empty_optional = false;

  static Item Tensor(graph::ValueId id) { return {.tensor = id}; }
  static Item Sequence(std::vector<graph::ValueId> tensors) {
    return {.sequence = std::move(tensors)};
  }
  bool IsTensor() const { return !sequence && !is_empty_optional; }
};

// A node that needs more than the values of its inputs: one with subgraphs, or one that works on
// sequences.
struct ItemNode {
  graph::Node node;  // without inputs and outputs
  std::vector<Item> inputs;
  std::map<std::string, const ::onnx::GraphProto*> bodies;  // by the name of the attribute
  std::vector<std::string> outputs;                         // their names in the model
  int64_t opset = 0;

  bool Has(size_t input) const {
    return input < inputs.size() &&
           (!inputs[input].IsTensor() || inputs[input].tensor != graph::kNoValue);
  }
};

// Adds the nodes of a body for these inputs, and returns its outputs.
using RunBody = std::function<absl::StatusOr<std::vector<Item>>(const ::onnx::GraphProto& body,
                                                                std::vector<Item> inputs)>;

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_BODY_ITEM_H_
