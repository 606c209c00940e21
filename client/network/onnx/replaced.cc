#include "client/network/onnx/replaced.h"

#include <utility>
#include <variant>

#include "client/network/graph/node_view.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::NodeView;
using graph::TensorType;
using graph::ValueId;
using Results = absl::StatusOr<std::vector<ValueId>>;
using Tensors = std::map<std::string, Tensor>;

// The element type and elements of a Constant's attribute.
struct AttributeElements {
  const std::string& name;  // of the output
  GraphBuilder& builder;

  ValueId Add(ir::DType dtype, std::vector<int64_t> shape, const ir::Scalars& elements) {
    const TensorType type{dtype, std::move(shape)};
    return builder.graph().AddConstant(name, type, graph::ConstantData(Encode(type, elements)));
  }
  template <typename T>
  ValueId AddList(ir::DType dtype, const std::vector<T>& list) {
    return Add(dtype, {static_cast<int64_t>(list.size())}, ir::Scalars(list.begin(), list.end()));
  }

  std::optional<ValueId> operator()(int64_t value) { return Add(ir::DType::kI64, {}, {value}); }
  std::optional<ValueId> operator()(double value) { return Add(ir::DType::kF32, {}, {value}); }
  std::optional<ValueId> operator()(const std::vector<int64_t>& list) {
    return AddList(ir::DType::kI64, list);
  }
  std::optional<ValueId> operator()(const std::vector<double>& list) {
    return AddList(ir::DType::kF32, list);
  }
  std::optional<ValueId> operator()(const std::string&) { return std::nullopt; }
  std::optional<ValueId> operator()(const std::vector<std::string>&) { return std::nullopt; }
};

Results Constant(const VersionedNode& node, const Tensors& tensors, GraphBuilder& builder) {
  const NodeView view(builder.graph(), node.node);
  const std::map<std::string, graph::Attribute>& plain = node.node.attributes;
  if (node.outputs.size() != 1 || plain.size() + tensors.size() != 1) {
    return view.InvalidError("needs one attribute and one output");
  }
  if (!tensors.empty()) {
    const Tensor& tensor = tensors.begin()->second;
    return std::vector{builder.graph().AddConstant(node.outputs[0], tensor.type, tensor.data)};
  }
  const std::optional<ValueId> value =
      std::visit(AttributeElements{node.outputs[0], builder}, plain.begin()->second);
  if (value) return std::vector{*value};
  return view.UnimplementedError("its elements are strings, which are not supported");
}

Results ConstantOfShape(const VersionedNode& node, const Tensors& tensors, GraphBuilder& builder) {
  const NodeView view(builder.graph(), node.node);
  if (!view.Has(0) || node.outputs.size() != 1) {
    return view.InvalidError("needs one input and one output");
  }
  TensorType type;
  HONE_ASSIGN_OR_RETURN(type.shape, view.Ints(0));
  ir::Scalar element = 0.0;
  if (const auto value = tensors.find("value"); value != tensors.end()) {
    const Tensor& tensor = value->second;
    if (tensor.type.elements() != 1) {
      return view.InvalidError("attribute 'value' must have one element");
    }
    type.dtype = tensor.type.dtype;
    element = Decode(tensor.type, tensor.data.bytes())[0];
  }
  absl::StatusOr<ValueId> filled = builder.AddFilled(node.outputs[0], std::move(type), element);
  if (filled.ok()) return std::vector{*filled};
  return absl::Status(filled.status().code(),
                      view.InvalidError(filled.status().message()).message());
}

// Input 1, the ratio, is ignored. Input 2, the training mode, must be false.
Results Dropout(const VersionedNode& node, GraphBuilder& builder) {
  const NodeView view(builder.graph(), node.node);
  if (!view.Has(0)) return view.InvalidError("input 0 is missing");
  if (node.outputs.size() > 2) return view.InvalidError("has more than two outputs");
  if (view.Has(2)) {
    HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> training, view.Elements(2));
    if (training.size() != 1 || training[0].IsTrue()) {
      return view.UnimplementedError("training is not supported");
    }
  }
  std::vector<ValueId> results = {node.node.inputs[0]};
  if (node.outputs.size() < 2 || node.outputs[1].empty()) return results;
  // The mask of the elements that are kept, all true. Before opset 10 it has the type of the input.
  const ir::DType dtype = node.opset < 10 ? view.Type(0).dtype : ir::DType::kBool;
  HONE_ASSIGN_OR_RETURN(
      const ValueId mask,
      builder.AddFilled(node.outputs[1], {dtype, view.Shape(0)}, ir::CastTo(dtype, 1.0)));
  results.push_back(mask);
  return results;
}

Results Identity(const VersionedNode& node, GraphBuilder& builder) {
  const NodeView view(builder.graph(), node.node);
  if (!view.Has(0) || node.outputs.size() != 1) {
    return view.InvalidError("needs one input and one output");
  }
  return std::vector{node.node.inputs[0]};
}

}  // namespace

bool IsReplaced(absl::string_view op) {
  return op == "Constant" || op == "ConstantOfShape" || op == "Dropout" || op == "Identity";
}

Results Replace(const VersionedNode& node, const Tensors& tensors, GraphBuilder& builder) {
  if (node.node.op == "Constant") return Constant(node, tensors, builder);
  if (node.node.op == "ConstantOfShape") return ConstantOfShape(node, tensors, builder);
  if (node.node.op == "Dropout") return Dropout(node, builder);
  return Identity(node, builder);
}

}  // namespace hone::onnx
