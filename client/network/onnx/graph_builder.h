#ifndef HONE_CLIENT_NETWORK_ONNX_GRAPH_BUILDER_H_
#define HONE_CLIENT_NETWORK_ONNX_GRAPH_BUILDER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/operator_def.h"

namespace hone::onnx {

// Whether a scale of quantized weights is a constant with an element that is not 0 and smaller than
// 2^-98, or not finite. Kernels add products of inputs and whole numbers before they multiply by
// the scale; with such a scale, that sum can overflow although the result is an ordinary number.
bool HasExtremeScale(const graph::Graph& graph, graph::ValueId scale);

// Builds a graph node by node. Nodes whose results are constant are computed at once if they are
// small, because the types of other nodes may depend on them. Larger ones stay nodes.
class GraphBuilder {
 public:
  // `names`: the names of the model's tensors, which generated names must avoid.
  explicit GraphBuilder(std::set<std::string> names) : tensor_names_{std::move(names), {}} {}

  const graph::Graph& graph() const { return graph_; }
  graph::Graph& graph() { return graph_; }

  // A name that no tensor has: `name`, or this name with a number.
  std::string FreshTensorName(absl::string_view name);
  // The same for nodes. A model may leave nodes unnamed, or give several nodes the same name.
  std::string FreshNodeName(absl::string_view name);

  // Constants with generated names.
  graph::ValueId AddInts(absl::string_view name, const std::vector<int64_t>& elements);
  graph::ValueId AddFloats(absl::string_view name, const std::vector<double>& elements);
  graph::ValueId AddScalar(absl::string_view name, ir::DType dtype, double value);
  // Counts the elements of a generated tensor, whose size is not bounded by that of the model.
  // ResourceExhausted: all such tensors of the graph are too large together.
  absl::Status Reserve(const graph::TensorType& type);
  // A constant tensor with equal elements. Errors are those of Reserve().
  absl::StatusOr<graph::ValueId> AddFilled(std::string name, graph::TensorType type,
                                           const ir::Scalar& element);

  // Adds a node, or constants in its place, or several nodes if it has very many outputs. Returns
  // the values of the outputs; kNoValue for those that are not wanted, which have an empty name.
  // Errors are those of Graph::AddNode, and of MakeGroup, so that a node that was added can be
  // computed.
  absl::StatusOr<std::vector<graph::ValueId>> Add(graph::Node node,
                                                  const std::vector<std::string>& output_names);

 private:
  struct Names {
    std::set<std::string> taken;
    std::map<std::string, int> next;  // the number to try next for each name that was asked for

    std::string Fresh(absl::string_view name);
  };

  // If an operand of a node is empty, replaces the node by one that Hone can compute and that has
  // the same result, or adds the result as a constant. Returns the constant; kNoValue: there is a
  // node to add.
  absl::StatusOr<graph::ValueId> ReplaceEmpty(graph::Node& node, const graph::TensorType& type,
                                              const std::string& output_name);
  // Adds the values of the outputs that have a name. `types`: of all outputs.
  absl::Status AddOutputs(graph::Node node, const graph::Types& types,
                          const std::vector<std::string>& output_names,
                          std::vector<graph::ValueId>& values);

  graph::Graph graph_;
  Names tensor_names_, node_names_;
  int64_t filled_elements_ = 0;
  double folded_points_ = 0;
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_GRAPH_BUILDER_H_
