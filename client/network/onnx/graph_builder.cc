#include "client/network/onnx/graph_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/group.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/operator_def.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::TensorType;
using graph::ValueId;

constexpr int64_t kMaxFilledElements = int64_t{1} << 26;  // of all filled tensors together
constexpr double kMaxFoldedPoints = 1 << 26;              // of all folded nodes together
// A node computes at most this many outputs, because a workload has a limited number of tensors,
// and a kernel a limited number of instructions.
constexpr size_t kMaxOutputs = 32;
// Larger filled tensors are computed when they are first read.
constexpr int64_t kComputedBytes = 4096;

// The reduction of no elements; nullopt: undefined, or not a number of this type.
std::optional<ir::Scalar> ReductionOfNone(absl::string_view op, ir::DType dtype) {
  if (op == "ReduceSum" || op == "ReduceSumSquare" || op == "ReduceL1" || op == "ReduceL2")
    return ir::CastTo(dtype, 0);
  if (op == "ReduceProd") return ir::CastTo(dtype, 1);
  if (op == "ReduceMax") return ir::ReducerIdentity(ir::Reducer::kMax, 0, dtype);
  if (op == "ReduceMin") return ir::ReducerIdentity(ir::Reducer::kMin, 0, dtype);
  if ((op == "ReduceLogSum" || op == "ReduceLogSumExp") && ir::IsFloat(dtype))
    return ir::Scalar(-std::numeric_limits<double>::infinity());
  return std::nullopt;
}

// The element that all of a result has although an operand is empty: a sum of no products, a
// reduction of no elements, or padding of nothing. nullopt: no operand is empty, or ONNX does not
// define the result (a mean of no elements, a padding with elements of the edge). `result`: the
// type of the only output, which is not empty. Errors are those of the node's attributes.
absl::StatusOr<std::optional<ir::Scalar>> ElementOfEmpty(const graph::NodeView& node,
                                                         const TensorType& result) {
  if (!node.Has(0) || node.Type(0).elements() > 0) return std::nullopt;
  const std::string& op = node.node().op;
  if (op == "MatMul") return ir::CastTo(result.dtype, 0);
  if (op != "Pad") return ReductionOfNone(op, result.dtype);
  HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "constant"));
  if (mode != "constant") return std::nullopt;
  if (!node.Has(2)) return ir::CastTo(result.dtype, 0);
  if (!node.IsConstant(2)) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> value, node.Elements(2));
  return value.empty() ? std::nullopt : std::optional(value[0]);
}

}  // namespace

bool HasExtremeScale(const graph::Graph& graph, ValueId scale) {
  const graph::Value& value = graph.value(scale);
  if (!value.constant.has_value()) return false;
  const absl::string_view bytes = value.constant->bytes();
  for (int64_t i = 0; i < value.type.elements(); ++i) {
    const double element = ir::ReadElement(value.type.dtype, bytes.data(), i).real();
    if (element != 0 && !(std::fabs(element) >= 0x1p-98 && std::isfinite(element))) return true;
  }
  return false;
}

std::string GraphBuilder::Names::Fresh(absl::string_view name) {
  std::string fresh(name);
  // A model may have many nodes without names, so the search does not begin at 2 for each.
  int& number = next.try_emplace(fresh, 2).first->second;
  for (; !taken.insert(fresh).second; ++number) fresh = absl::StrCat(name, "_", number);
  return fresh;
}

std::string GraphBuilder::FreshTensorName(absl::string_view name) {
  return tensor_names_.Fresh(name);
}

std::string GraphBuilder::FreshNodeName(absl::string_view name) { return node_names_.Fresh(name); }

ValueId GraphBuilder::AddInts(absl::string_view name, const std::vector<int64_t>& elements) {
  const TensorType type{ir::DType::kI64, {static_cast<int64_t>(elements.size())}};
  const ir::Scalars scalars(elements.begin(), elements.end());
  return graph_.AddConstant(FreshTensorName(name), type,
                            graph::ConstantData(Encode(type, scalars)));
}

ValueId GraphBuilder::AddFloats(absl::string_view name, const std::vector<double>& elements) {
  const TensorType type{ir::DType::kF32, {static_cast<int64_t>(elements.size())}};
  const ir::Scalars scalars(elements.begin(), elements.end());
  return graph_.AddConstant(FreshTensorName(name), type,
                            graph::ConstantData(Encode(type, scalars)));
}

ValueId GraphBuilder::AddScalar(absl::string_view name, ir::DType dtype, double value) {
  const TensorType type{dtype, {}};
  return graph_.AddConstant(FreshTensorName(name), type,
                            graph::ConstantData(Encode(type, {ir::CastTo(dtype, value)})));
}

absl::Status GraphBuilder::Reserve(const TensorType& type) {
  HONE_RETURN_IF_ERROR(CheckType(type));
  const int64_t elements = type.elements();
  if (elements > kMaxFilledElements - filled_elements_) {
    return absl::ResourceExhaustedError(absl::StrCat("would be a constant tensor ", type.ToText(),
                                                     "; the limit of such tensors is ",
                                                     kMaxFilledElements, " elements in total"));
  }
  filled_elements_ += elements;
  return absl::OkStatus();
}

absl::StatusOr<ValueId> GraphBuilder::AddFilled(std::string name, TensorType type,
                                                const ir::Scalar& element) {
  HONE_RETURN_IF_ERROR(Reserve(type));
  const auto fill = [one = graph::Encode({type.dtype, {}}, {element}), size = type.bytes()] {
    std::string bytes(size, '\0');
    for (size_t at = 0; at < bytes.size(); at += one.size()) {
      std::memcpy(bytes.data() + at, one.data(), one.size());
    }
    return bytes;
  };
  if (type.bytes() <= kComputedBytes) {
    return graph_.AddConstant(std::move(name), std::move(type), graph::ConstantData(fill()));
  }
  const Digest recipe =
      DigestBuilder().Add("filled").Add(element.ToText()).Add(type.bytes()).Finish();
  graph::ConstantData data = graph::ConstantData::Computed(recipe, type.bytes(), fill);
  return graph_.AddConstant(std::move(name), std::move(type), std::move(data));
}

absl::StatusOr<std::vector<ValueId>> GraphBuilder::Add(
    Node node, const std::vector<std::string>& output_names) {
  HONE_ASSIGN_OR_RETURN(const graph::Types types, InferTypes(graph::NodeView(graph_, node)));
  if (output_names.size() > types.size()) {
    return graph::NodeView(graph_, node)
        .InvalidError(
            absl::StrCat("the operator has ", types.size(), " outputs, not ", output_names.size()));
  }
  std::vector<ValueId> values(output_names.size(), kNoValue);
  if (output_names.size() == 1 && !output_names[0].empty() && types[0].elements() > 0) {
    HONE_ASSIGN_OR_RETURN(values[0], ReplaceEmpty(node, types[0], output_names[0]));
    if (values[0] != kNoValue) return values;
  }
  std::vector<std::string> names(output_names.size());  // of the outputs to add together
  size_t count = 0;
  for (size_t i = 0; i < output_names.size(); ++i) {
    if (output_names[i].empty()) continue;
    if (types[i].elements() == 0) {  // kernels have no empty tensors
      values[i] = graph_.AddConstant(output_names[i], types[i], graph::ConstantData(""));
      continue;
    }
    if (count == kMaxOutputs) {
      Node part = node;
      part.name = FreshNodeName(node.name);
      HONE_RETURN_IF_ERROR(AddOutputs(std::move(part), types, names, values));
      names.assign(output_names.size(), "");
      count = 0;
    }
    names[i] = output_names[i];
    ++count;
  }
  if (count > 0) HONE_RETURN_IF_ERROR(AddOutputs(std::move(node), types, names, values));
  return values;
}

absl::StatusOr<ValueId> GraphBuilder::ReplaceEmpty(Node& node, const TensorType& type,
                                                   const std::string& output_name) {
  const graph::NodeView view(graph_, node);
  const auto is_empty = [&](int input) {
    return view.Has(input) && view.Type(input).elements() == 0;
  };
  HONE_ASSIGN_OR_RETURN(const std::optional<ir::Scalar> element, ElementOfEmpty(view, type));
  const auto fill = [&](const std::string& name, const TensorType& filled,
                        const ir::Scalar& value) -> absl::StatusOr<ValueId> {
    absl::StatusOr<ValueId> id = AddFilled(name, filled, value);
    if (id.ok()) return id;
    return absl::Status(id.status().code(), view.InvalidError(id.status().message()).message());
  };
  if (element.has_value()) return fill(output_name, type, *element);
  if ((node.op == "ScatterND" || node.op == "ScatterElements") && is_empty(2)) {
    node = {.name = node.name, .op = "Identity", .inputs = {node.inputs[0]}};
  } else if (node.op == "Gemm" && is_empty(0) && is_empty(1)) {
    // A sum of no products is that of one product of zeros.
    for (const int input : {0, 1}) {
      TensorType zeros = view.Type(input);
      for (int64_t& extent : zeros.shape) extent = std::max<int64_t>(extent, 1);
      HONE_ASSIGN_OR_RETURN(node.inputs[input],
                            fill(FreshTensorName("zeros"), zeros, ir::CastTo(zeros.dtype, 0)));
    }
  }
  return kNoValue;
}

absl::Status GraphBuilder::AddOutputs(Node node, const graph::Types& types,
                                      const std::vector<std::string>& output_names,
                                      std::vector<ValueId>& values) {
  for (const std::string& name : output_names) node.outputs.push_back(name.empty() ? kNoValue : 0);
  const graph::NodeView view(graph_, node);
  const bool stays =  // quantized weights
      node.op == "DequantizeLinear" && !HasExtremeScale(graph_, node.inputs[1]);
  if (CanFold(graph_, node) && !stays) {
    const double points = FoldCost(graph_, node, types);
    if (points <= kMaxFoldedPoints - folded_points_) {
      folded_points_ += points;
      HONE_ASSIGN_OR_RETURN(std::vector<graph::ConstantData> folded, Fold(graph_, node));
      size_t next = 0;
      for (size_t i = 0; i < output_names.size(); ++i) {
        if (output_names[i].empty()) continue;
        values[i] = graph_.AddConstant(output_names[i], types[i], std::move(folded[next++]));
      }
      return absl::OkStatus();
    }
    if (graph::FindOperator(node.op)->define == nullptr) {
      return view.InvalidError(absl::StrCat("is constant and too large: ", types[0].ToText()));
    }
  }
  HONE_ASSIGN_OR_RETURN(const graph::Graph alone, AloneInGraph(graph_, node));
  HONE_RETURN_IF_ERROR(MakeGroup(alone, {0}, "node").status());
  HONE_RETURN_IF_ERROR(graph_.AddNode(std::move(node), output_names));
  for (size_t i = 0; i < output_names.size(); ++i) {
    if (!output_names[i].empty()) values[i] = graph_.nodes.back().outputs[i];
  }
  return absl::OkStatus();
}

}  // namespace hone::onnx
