#include "client/network/graph/operator_def.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/families.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using Registry = std::map<absl::string_view, const OperatorDef*>;

const Registry& AllOperators() {
  static const Registry* const registry = [] {
    auto* const all = new Registry;
    for (const absl::Span<const OperatorDef> family : {
             ActivationOperators(),
             AttentionOperators(),
             BinaryOperators(),
             ConcatOperators(),
             ConstantOperators(),
             ConvolutionOperators(),
             EinsumOperators(),
             GatherScatterOperators(),
             GemmOperators(),
             MatMulOperators(),
             NormalizationOperators(),
             PadOperators(),
             PoolingOperators(),
             QuantizedOperators(),
             QuantizedWeightsOperators(),
             RecurrentOperators(),
             ReductionOperators(),
             RepeatOperators(),
             ReshapeTransposeOperators(),
             ResizeOperators(),
             SelectionOperators(),
             SliceOperators(),
             SoftmaxOperators(),
             TopKOperators(),
             TriangleOperators(),
             UnaryOperators(),
             VariadicOperators(),
         }) {
      for (const OperatorDef& def : family) all->emplace(def.name, &def);
    }
    return all;
  }();
  return *registry;
}

}  // namespace

const OperatorDef* FindOperator(absl::string_view name) {
  const auto found = AllOperators().find(name);
  return found == AllOperators().end() ? nullptr : found->second;
}

const std::vector<const OperatorDef*>& Operators() {
  static const auto* const operators = [] {
    auto* const list = new std::vector<const OperatorDef*>;
    for (const auto& [name, def] : AllOperators()) list->push_back(def);
    return list;
  }();
  return *operators;
}

absl::StatusOr<Types> InferTypes(const NodeView& node) {
  const OperatorDef* const def = FindOperator(node.node().op);
  if (def == nullptr) return node.UnimplementedError("the operator is not supported");
  const bool too_many = def->max_inputs >= 0 && node.inputs() > def->max_inputs;
  if (node.inputs() < def->min_inputs || too_many) {
    return node.InvalidError(
        absl::StrCat("has ", node.inputs(), " inputs instead of ", def->min_inputs,
                     def->max_inputs == def->min_inputs ? ""
                     : def->max_inputs < 0              ? " or more"
                                                        : absl::StrCat(" to ", def->max_inputs)));
  }
  for (int i = 0; i < def->min_inputs; ++i) {
    if (!node.Has(i)) return node.InvalidError(absl::StrCat("input ", i, " is missing"));
  }
  HONE_ASSIGN_OR_RETURN(Types types, def->infer(node));
  for (const TensorType& type : types) {
    const absl::Status status = CheckType(type);
    if (!status.ok()) return node.InvalidError(absl::StrCat("its result ", status.message()));
    if (ir::IsPacked(type.dtype)) {
      return node.UnimplementedError(absl::StrCat("its result is ", type.ToText(),
                                                  "; only constants may have elements of 4 bits"));
    }
  }
  return types;
}

}  // namespace hone::graph
