#include "client/onnx/graph_builder.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/fold_cost.h"
#include "common/graph/interpreter.h"
#include "common/graph/node_view.h"
#include "common/graph/operator_def.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::TensorType;
using graph::ValueId;

constexpr int64_t kMaxFilledElements = int64_t{1} << 26;  // of all filled tensors together
constexpr double kMaxFoldedPoints = 1 << 26;              // of all folded nodes together
// Larger filled tensors are computed when they are first read.
constexpr int64_t kComputedBytes = 4096;

}  // namespace

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

absl::StatusOr<ValueId> GraphBuilder::AddFilled(std::string name, TensorType type,
                                                const ir::Scalar& element) {
  HONE_RETURN_IF_ERROR(CheckType(type));
  const int64_t elements = type.elements();
  if (elements > kMaxFilledElements - filled_elements_) {
    return absl::ResourceExhaustedError(absl::StrCat("would be a constant tensor ", type.ToText(),
                                                     "; the limit of such tensors is ",
                                                     kMaxFilledElements, " elements in total"));
  }
  filled_elements_ += elements;
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
  if (output_names.size() <= types.size() && CanFold(graph_, node) &&
      node.op != "DequantizeLinear") {  // weights stay quantized
    const bool must_fold = graph::FindOperator(node.op)->define == nullptr;
    const double points = FoldCost(graph_, node, types, output_names.size());
    if (points <= kMaxFoldedPoints - folded_points_) {
      folded_points_ += points;
      return AddFolded(std::move(node), types, output_names);
    }
    if (must_fold) {
      return graph::NodeView(graph_, node)
          .InvalidError(absl::StrCat("is constant and too large: ", types[0].ToText()));
    }
  }
  HONE_RETURN_IF_ERROR(graph_.AddNode(std::move(node), output_names));
  return graph_.nodes.back().outputs;
}

absl::StatusOr<std::vector<ValueId>> GraphBuilder::AddFolded(
    Node node, const graph::Types& types, const std::vector<std::string>& output_names) {
  // Fold() looks only at which outputs are wanted.
  for (const std::string& name : output_names) node.outputs.push_back(name.empty() ? kNoValue : 0);
  HONE_ASSIGN_OR_RETURN(std::vector<graph::ConstantData> folded, Fold(graph_, node));
  std::vector<ValueId> values;
  size_t next = 0;
  for (size_t i = 0; i < output_names.size(); ++i) {
    values.push_back(output_names[i].empty() ? kNoValue
                                             : graph_.AddConstant(output_names[i], types[i],
                                                                  std::move(folded[next++])));
  }
  return values;
}

}  // namespace hone::onnx
