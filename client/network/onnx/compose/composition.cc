#include "client/network/onnx/compose/composition.h"

namespace hone::onnx {

const std::vector<Composition>& Compositions() {
  static const auto* const compositions = [] {
    auto* const all = new std::vector<Composition>;
    for (const absl::Span<const Composition> family : {
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

}  // namespace hone::onnx
