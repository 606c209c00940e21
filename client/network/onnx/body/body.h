#ifndef HONE_CLIENT_NETWORK_ONNX_BODY_BODY_H_
#define HONE_CLIENT_NETWORK_ONNX_BODY_BODY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/onnx/body/function.h"
#include "client/network/onnx/body/item.h"
#include "client/network/onnx/body/running_order.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/tensor_proto.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// The names that the nodes of a graph can read: its own, and those of the graph around it.
struct Scope {
  Scope* outer;  // null for the graph of the model, and for functions
  const ::onnx::GraphProto& graph;
  int64_t opset;
  // For the graph of the model, which runs once: the same graph, out of which initializers are
  // moved, and the raw data of each of them. Null for others, whose messages have their data.
  ::onnx::GraphProto* movable = nullptr;
  const std::vector<std::optional<graph::ConstantData>>* raw_data = nullptr;
  const RunningOrder* order = nullptr;
  std::map<std::string, int> initializers;
  std::map<std::string, Item> items;  // that are known so far

  // Whether a name is known here or outside.
  bool Knows(const std::string& name) const;
};

// Adds the nodes of a model's graph, and those of the graphs inside of its nodes, to a graph.
class BodyImporter {
 public:
  BodyImporter(GraphBuilder& builder, ExternalData& files, Functions& functions)
      : builder_(builder), files_(files), functions_(functions) {}

  // Reads the names of the initializers and finds the nodes to add. InvalidArgument: a name is
  // missing or defined twice, or the nodes have no order. Unimplemented: operators are not
  // supported.
  absl::Status Prepare(Scope& scope);
  // Adds the nodes of the scope's graph. REQUIRES: Prepare(), and its inputs are in scope.items.
  absl::Status AddNodes(Scope& scope);
  // Returns what a name stands for. Initializers become constants when they are first read.
  // REQUIRES: the scope knows the name, or it is "".
  absl::StatusOr<Item> ItemOf(Scope& scope, const std::string& name);

  // Attributes that their operators do not have, with the nodes that have them.
  using AttributeUses = std::map<std::pair<std::string, std::string>, std::vector<std::string>>;
  const AttributeUses& unknown_attributes() const { return unknown_attributes_; }

 private:
  absl::Status AddNode(Scope& scope, const ::onnx::NodeProto& proto);
  // Adds a node of which graph operators remain. Returns its results.
  absl::StatusOr<std::vector<Item>> AddPlain(Scope& scope, const ::onnx::NodeProto& proto,
                                             ItemNode node,
                                             const std::map<std::string, Tensor>& tensors);
  absl::StatusOr<std::vector<Item>> Run(const ::onnx::GraphProto& body, std::vector<Item> inputs,
                                        Scope* outer, int64_t opset);

  GraphBuilder& builder_;
  ExternalData& files_;
  Functions& functions_;
  std::map<const ::onnx::GraphProto*, RunningOrder> orders_;
  // The constants of bodies, which may run many times: initializers by graph and name, and the
  // results of Constant nodes.
  std::map<std::pair<const ::onnx::GraphProto*, std::string>, graph::ValueId> constants_;
  std::map<const ::onnx::NodeProto*, std::vector<Item>> constant_nodes_;
  int depth_ = 0;               // of bodies in bodies
  int64_t inlined_nodes_ = 0;   // of all bodies
  int64_t inlined_values_ = 0;  // inputs, outputs and initializers of all bodies
  AttributeUses unknown_attributes_;
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_BODY_BODY_H_
