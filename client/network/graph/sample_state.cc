#include "client/network/graph/sample_state.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"

namespace hone::graph {
SampleStates::SampleStates(const Graph& graph, int64_t samples, const SampleAxes& axes)
    : graph_(graph),
      samples_(samples),
      axes_(axes),
      masks_(graph, samples, axes.inputs, axes.growing),
      states_(graph.values.size()) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (axes.inputs[i] != kNoAxis) Begin(graph.inputs[i], {axes.inputs[i]});
  }
  for (const auto& [id, dimensions] : axes.growing) {
    if (graph.IsConstant(id)) Begin(id, dimensions);
  }
}

void SampleStates::Begin(ValueId id, const std::vector<int>& dimensions) {
  const std::vector<int64_t>& shape = ShapeOf(id);
  SampleState& state = states_[id];
  state.depends = true;
  if (dimensions.size() == 1) {
    state.sample = SampleDim{dimensions[0], shape[dimensions[0]] / samples_};
  } else if (shape[dimensions[0]] == samples_ && shape[dimensions[1]] == samples_) {
    state.pair = SamplePair{.row = dimensions[0], .column = dimensions[1]};
  }
}

const std::vector<int>& SampleStates::GrowingOf(ValueId id) const {
  static const std::vector<int> kNone;
  const auto growing = axes_.growing.find(id);
  return growing == axes_.growing.end() ? kNone : growing->second;
}

bool SampleStates::HasSamples(ValueId id, int axis) const {
  const std::optional<SampleDim>& sample = states_[id].sample;
  return sample.has_value() && sample->axis == axis && sample->block == 1;
}

int SampleStates::ShiftOf(const Node& node, ValueId id) const {
  return static_cast<int>(ShapeOf(node.outputs[0]).size()) - static_cast<int>(ShapeOf(id).size());
}

bool SampleStates::AreAll(ValueId id, absl::FunctionRef<bool(double)> wanted) const {
  return !states_[id].depends && AreAllOf(id, wanted);
}

PaddingNumbers SampleStates::NumbersOf(const Node& node) const {
  // A count may be that of a position behind the samples.
  const bool reads_counts = absl::c_any_of(
      node.inputs, [&](ValueId id) { return id != kNoValue && states_[id].masked.has_value(); });
  return NumbersAfter(graph_, node, reads_counts, [&](ValueId id) { return states_[id].numbers; });
}

PaddingNumbers::Finite SampleStates::FiniteInputsOf(const Node& node) const {
  auto finite = PaddingNumbers::Finite::kProven;
  for (const ValueId id : node.inputs) {
    if (id == kNoValue) continue;
    finite = std::min(finite, states_[id].numbers.finite);
    const bool has_padding = graph_.IsConstant(id) && states_[id].depends;
    if (has_padding && !AreAllOf(id, [](double element) { return std::isfinite(element); })) {
      return PaddingNumbers::Finite::kNo;
    }
  }
  return finite;
}

}  // namespace hone::graph
