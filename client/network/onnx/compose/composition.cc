#include "client/network/onnx/compose/composition.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::onnx {

const std::vector<Composition>& Compositions() {
  static const auto* const compositions = [] {
    auto* const all = new std::vector<Composition>;
    for (const absl::Span<const Composition> family : {
             FusedCompositions(),
             PlaceCompositions(),
             RecurrentCompositions(),
             ResizeCompositions(),
             SamplingCompositions(),
             SignalCompositions(),
             StatisticsCompositions(),
         }) {
      all->insert(all->end(), family.begin(), family.end());
    }
    return all;
  }();
  return *compositions;
}

const Composition* FindComposition(const graph::NodeView& node) {
  for (const Composition& each : Compositions()) {
    if (each.op != node.node().op) continue;
    return each.applies == nullptr || each.applies(node) ? &each : nullptr;
  }
  return nullptr;
}

Composed Compose(const Composition& composition, VersionedNode& node, GraphBuilder& builder) {
  const graph::NodeView view(builder.graph(), node.node);
  const auto& [least, most] = composition.inputs;
  if (view.inputs() < least || view.inputs() > most) {
    return view.InvalidError(
        absl::StrCat("has ", view.inputs(), " inputs instead of ", least, " to ", most));
  }
  for (int i = 0; i < least; ++i) {
    if (!view.Has(i)) return view.InvalidError(absl::StrCat("input ", i, " is missing"));
  }
  Rewrite rewrite(node, builder);
  HONE_ASSIGN_OR_RETURN(std::vector<graph::ValueId> results, composition.compose(rewrite));
  if (results.size() < node.outputs.size()) {
    return view.InvalidError(
        absl::StrCat("the operator has ", results.size(), " outputs, not ", node.outputs.size()));
  }
  results.resize(node.outputs.size(), graph::kNoValue);
  return results;
}

}  // namespace hone::onnx
