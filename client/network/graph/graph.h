#ifndef HONE_CLIENT_NETWORK_GRAPH_GRAPH_H_
#define HONE_CLIENT_NETWORK_GRAPH_GRAPH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/digest.h"
#include "common/ir/dtype.h"

namespace hone::graph {

// The elements of a constant tensor, row-major, little-endian. Immutable, shared by copies, and
// safe to use from several threads. The bytes may belong to a mapped file, or be computed when they
// are first read.
class ConstantData {
 public:
  explicit ConstantData(std::string bytes);
  ConstantData(std::shared_ptr<const void> owner, absl::string_view bytes);
  // Makes a constant whose `size` bytes are computed by `compute` when bytes() is first called.
  // `recipe` identifies the computation: constants with equal recipes have equal elements.
  static ConstantData Computed(const Digest& recipe, int64_t size,
                               std::function<std::string()> compute);

  int64_t size() const;
  absl::string_view bytes() const;

  // Whether the elements are not known before bytes() computes them.
  bool is_computed() const { return computed_ != nullptr; }
  // Identifies the elements in this process without reading them. Constants with equal origins have
  // equal elements; constants with equal elements may have different origins.
  Digest origin() const;

 private:
  struct Computation;

  std::shared_ptr<const void> owner_;
  absl::string_view bytes_;                // if computed_ is null
  int64_t id_ = 0;                         // the same for copies only; see origin()
  std::shared_ptr<Computation> computed_;  // may be null
};

// The type of a tensor. The rank may be 0 (a scalar); extents are known and at least 0.
struct TensorType {
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;

  // The product of the extents. REQUIRES: Graph::Verify or an operator checked the type.
  int64_t elements() const;
  int64_t bytes() const { return ir::BytesOf(dtype, elements()); }
  // "f32[1, 3, 224, 224]"; "f32[]" for a scalar.
  std::string ToText() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// Checks a type. InvalidArgument: an extent is negative, or the rank or number of elements exceeds
// the limits of ir::Workload.
absl::Status CheckType(const TensorType& type);

// Identifies a tensor of a graph: an index into Graph::values.
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an optional input or output that is absent

// A tensor of a graph: an input, a constant, or an output of one node.
struct Value {
  std::string name;  // the model's name for it; unique in the graph
  TensorType type;
  std::optional<ConstantData> constant;
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;

// An application of an operator (operator_def.h).
struct Node {
  std::string name;  // the model's name for it, or one made up from the operator and a number
  std::string op;    // "Conv"
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::map<std::string, Attribute> attributes;
};

// A network: operators applied to tensors of known types. Operators are those of ONNX with the
// semantics of opset 25; an importer converts older ones. A value type; copies share constants.
class Graph {
 public:
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // in topological order
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;

  ValueId AddValue(std::string name, TensorType type);
  ValueId AddConstant(std::string name, TensorType type, ConstantData data);
  // Adds a node whose outputs are new values of the types that its operator infers. Outputs that
  // are not wanted have an empty name. InvalidArgument, Unimplemented: the operator refuses it.
  absl::Status AddNode(Node node, const std::vector<std::string>& output_names);

  const Value& value(ValueId id) const { return values[id]; }
  bool IsConstant(ValueId id) const { return values[id].constant.has_value(); }
  // Returns the node that computes each value; -1 for inputs and constants.
  std::vector<int> Producers() const;
  // Returns the nodes that read each value: each node once, in graph order.
  std::vector<std::vector<int>> Consumers() const;

  // Checks the graph. InvalidArgument, naming the node or value: a value is read before it is
  // computed, is computed twice, shares its name with another, has a constant of the wrong size, or
  // has another type than its operator infers. Unimplemented: an operator is unknown.
  absl::Status Verify() const;

  // One line per input, constant, node and output:
  //   input x: f32[1, 3, 224, 224]
  //   constant w: f32[64, 3, 7, 7]
  //   conv1: y: f32[1, 64, 112, 112] = Conv(x, w) strides=[2, 2] pads=[3, 3, 3, 3]
  //   output y
  std::string ToText() const;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_GRAPH_H_
