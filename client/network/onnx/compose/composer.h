#ifndef HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSER_H_
#define HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/graph_builder.h"

namespace hone::onnx {

// Adds the nodes and constants that together stand for one node of a model. The builder and the
// node must outlive it. Errors of all methods are those of GraphBuilder::Add.
class Composer {
 public:
  // `outputs`: the names of the node's outputs, "" for those that are not wanted.
  Composer(GraphBuilder& builder, const graph::Node& node, int64_t opset,
           const std::vector<std::string>& outputs)
      : builder_(builder), node_(node), opset_(opset) {
    for (const std::string& name : outputs) wanted_.push_back(!name.empty());
  }

  const graph::Graph& graph() const { return builder_.graph(); }
  graph::NodeView view() const { return graph::NodeView(builder_.graph(), node_); }
  graph::ValueId input(size_t index) const {
    return index < node_.inputs.size() ? node_.inputs[index] : graph::kNoValue;
  }
  int64_t opset() const { return opset_; }
  bool Wants(size_t output) const { return output < wanted_.size() && wanted_[output]; }
  const graph::TensorType& TypeOf(graph::ValueId id) const {
    return builder_.graph().value(id).type;
  }
  bool IsConstant(graph::ValueId id) const { return builder_.graph().IsConstant(id); }

  // Adds a node that applies `op` to values, and returns its result.
  using Attributes = std::map<std::string, graph::Attribute>;
  absl::StatusOr<graph::ValueId> Apply(absl::string_view op, std::vector<graph::ValueId> inputs,
                                       Attributes attributes = {});
  // The same for a node of several outputs. The result has kNoValue for those that are not wanted.
  absl::StatusOr<std::vector<graph::ValueId>> ApplyFor(const std::vector<bool>& wanted,
                                                       absl::string_view op,
                                                       std::vector<graph::ValueId> inputs,
                                                       Attributes attributes = {});

  // Constants: lists, and a scalar of the element type of another value.
  graph::ValueId Ints(absl::string_view name, const std::vector<int64_t>& elements);
  graph::ValueId Floats(absl::string_view name, const std::vector<double>& elements);
  graph::ValueId Scalar(absl::string_view name, graph::ValueId like, double value);
  graph::ValueId Constant(absl::string_view name, const graph::TensorType& type,
                          const ir::Scalars& elements);

  // Must be called before the elements of a large constant are computed. ResourceExhausted: all
  // such constants are too large together.
  absl::Status Reserve(const graph::TensorType& type);

  // Short forms of common nodes. Parts and other shapes of constants share their elements.
  absl::StatusOr<graph::ValueId> Cast(graph::ValueId value, ir::DType dtype);
  absl::StatusOr<graph::ValueId> Reshape(graph::ValueId value, const std::vector<int64_t>& shape);
  absl::StatusOr<graph::ValueId> Transpose(graph::ValueId value, std::vector<int64_t> order);
  // The elements from `begin` up to `end` along an axis.
  absl::StatusOr<graph::ValueId> Slice(graph::ValueId value, int64_t axis, int64_t begin,
                                       int64_t end);
  // The elements at one index of an axis, without this axis.
  absl::StatusOr<graph::ValueId> At(graph::ValueId value, int64_t axis, int64_t index);
  // The parts of extent 1 along an axis, and the same without this axis.
  absl::StatusOr<std::vector<graph::ValueId>> Split(graph::ValueId value, int64_t axis);
  absl::StatusOr<std::vector<graph::ValueId>> Unstack(graph::ValueId value, int64_t axis);
  // Joins any number of tensors, along an axis that they have or along a new one.
  absl::StatusOr<graph::ValueId> Concat(std::vector<graph::ValueId> parts, int64_t axis);
  absl::StatusOr<graph::ValueId> Stack(std::vector<graph::ValueId> parts, int64_t axis);

 protected:
  std::string TensorName(absl::string_view suffix) const;

  GraphBuilder& builder_;

 private:
  const graph::Node& node_;
  const int64_t opset_;
  std::vector<bool> wanted_;
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSER_H_
