#ifndef HONE_CLIENT_NETWORK_ONNX_REWRITE_H_
#define HONE_CLIENT_NETWORK_ONNX_REWRITE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/opset.h"

namespace hone::onnx {

// A node of a model while it is converted to the operators of graphs. The nodes and constants that
// this adds have names that begin with the name of the node.
class Rewrite {
 public:
  Rewrite(VersionedNode& versioned, GraphBuilder& builder)
      : versioned_(versioned), builder_(builder) {}

  graph::Node& node() { return versioned_.node; }
  graph::NodeView view() const { return graph::NodeView(builder_.graph(), versioned_.node); }
  int64_t all_outputs() const { return versioned_.all_outputs; }
  // Whether an output of the model's node has a name, so that it may be read.
  bool WantsOutput(size_t output) const {
    return output < versioned_.outputs.size() && !versioned_.outputs[output].empty();
  }
  // An input; kNoValue if it is absent.
  graph::ValueId In(int input) const {
    return view().Has(input) ? versioned_.node.inputs[input] : graph::kNoValue;
  }
  const graph::TensorType& TypeOf(graph::ValueId id) const {
    return builder_.graph().value(id).type;
  }

  std::optional<graph::Attribute> Take(const std::string& name);
  void SetInput(size_t index, graph::ValueId value);
  // Converts a list attribute to an input.
  absl::Status ListToInput(const std::string& name, size_t index);
  // Converts a number attribute to a scalar input with the element type of the first input.
  absl::Status NumberToInput(const std::string& name, size_t index);

  // Adds a node that applies `op` to values, and returns its result.
  absl::StatusOr<graph::ValueId> Apply(absl::string_view op, std::vector<graph::ValueId> inputs,
                                       std::map<std::string, graph::Attribute> attributes = {});
  // The same for an operator of several outputs. The result has kNoValue for those that are not
  // wanted.
  absl::StatusOr<std::vector<graph::ValueId>> ApplyAll(
      absl::string_view op, std::vector<graph::ValueId> inputs,
      std::map<std::string, graph::Attribute> attributes, const std::vector<bool>& wanted);
  // The value with another shape, or itself if it has this shape.
  absl::StatusOr<graph::ValueId> Reshape(graph::ValueId value, const std::vector<int64_t>& shape);

  // Constants.
  graph::ValueId Ints(absl::string_view name, const std::vector<int64_t>& elements) {
    return builder_.AddInts(TensorName(name), elements);
  }
  graph::ValueId Floats(absl::string_view name, const std::vector<double>& elements) {
    return builder_.AddFloats(TensorName(name), elements);
  }
  // A scalar of the element type of another value.
  graph::ValueId Scalar(absl::string_view name, graph::ValueId like, double value) {
    return builder_.AddScalar(TensorName(name), TypeOf(like).dtype, value);
  }
  graph::ValueId Whole(absl::string_view name, int64_t value) {
    return builder_.AddScalar(TensorName(name), ir::DType::kI64, static_cast<double>(value));
  }
  graph::ValueId Constant(absl::string_view name, graph::TensorType type,
                          graph::ConstantData data) {
    return builder_.graph().AddConstant(builder_.FreshTensorName(TensorName(name)), std::move(type),
                                        std::move(data));
  }
  // See GraphBuilder::AddFilled(). The message of an error names the node.
  absl::StatusOr<graph::ValueId> Filled(absl::string_view name, graph::TensorType type,
                                        const ir::Scalar& element);
  // The elements of a constant. REQUIRES: it is one.
  const graph::ConstantData& ElementsOf(graph::ValueId id) const {
    return *builder_.graph().value(id).constant;
  }

 private:
  std::string TensorName(absl::string_view suffix) const;

  VersionedNode& versioned_;
  GraphBuilder& builder_;
};

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_REWRITE_H_
