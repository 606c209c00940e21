#ifndef HONE_CLIENT_NETWORK_GRAPH_NODE_VIEW_H_
#define HONE_CLIENT_NETWORK_GRAPH_NODE_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"
#include "common/ir/dtype.h"

namespace hone::graph {

// A view of a node for its operator: the types of its inputs, their elements if they are constant,
// and its attributes. The graph and the node must outlive the view.
class NodeView {
 public:
  NodeView(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  const Node& node() const { return node_; }

  // Inputs.
  int inputs() const { return static_cast<int>(node_.inputs.size()); }
  // Whether an optional input is present.
  bool Has(int input) const { return input < inputs() && node_.inputs[input] != kNoValue; }
  const TensorType& Type(int input) const { return graph_.value(node_.inputs[input]).type; }
  const std::vector<int64_t>& Shape(int input) const { return Type(input).shape; }
  int64_t Rank(int input) const { return static_cast<int64_t>(Shape(input).size()); }
  bool IsConstant(int input) const { return graph_.IsConstant(node_.inputs[input]); }
  // The elements of a constant input. FailedPrecondition: the input is not constant; the message
  // names the node and the input.
  absl::StatusOr<std::vector<ir::Scalar>> Elements(int input) const;
  absl::StatusOr<std::vector<int64_t>> Ints(int input) const;

  // Outputs.
  int outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool WantsOutput(int output) const {
    return output < outputs() && node_.outputs[output] != kNoValue;
  }

  // Attributes. InvalidArgument: the attribute has another kind.
  bool HasAttribute(absl::string_view name) const;
  absl::StatusOr<int64_t> Int(absl::string_view name, int64_t default_value) const;
  absl::StatusOr<double> Float(absl::string_view name, double default_value) const;
  absl::StatusOr<std::string> String(absl::string_view name, std::string default_value) const;
  absl::StatusOr<std::vector<int64_t>> IntList(absl::string_view name,
                                               std::vector<int64_t> default_value) const;
  absl::StatusOr<std::vector<double>> FloatList(absl::string_view name,
                                                std::vector<double> default_value) const;
  absl::StatusOr<std::vector<std::string>> StringList(absl::string_view name,
                                                      std::vector<std::string> default_value) const;
  // The attribute as an axis of a tensor of this rank: negative values count from the end.
  absl::StatusOr<int64_t> AxisAttribute(absl::string_view name, int64_t default_value,
                                        int64_t rank) const;

  // "node 'conv1' (Conv): <what>".
  absl::Status InvalidError(absl::string_view what) const;
  absl::Status UnimplementedError(absl::string_view what) const;

 private:
  std::string Describe(absl::string_view what) const;

  const Graph& graph_;
  const Node& node_;
};

// Converts between bytes and elements. REQUIRES: the sizes match.
std::vector<ir::Scalar> Decode(const TensorType& type, absl::string_view bytes);
std::string Encode(const TensorType& type, const std::vector<ir::Scalar>& elements);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_NODE_VIEW_H_
