#include "client/network/graph/masked_sums.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "client/network/graph/node_view.h"
#include "common/ir/dtype.h"

namespace hone::graph {
namespace {

using Extremes = InputMasks::Extremes;

bool IsZero(const Extremes& elements) { return elements.least == 0 && elements.most == 0; }
bool AreFinite(const Extremes& elements) {
  return std::isfinite(elements.least) && std::isfinite(elements.most);
}
bool AreSmall(const Extremes& elements) {
  return elements.least >= -SampleStates::kMostInScores &&
         elements.most <= SampleStates::kMostInScores;
}

// A sample along `axis`.
SampleState SamplesAlong(int axis, std::optional<MaskedSamples> masked) {
  return {.depends = true, .sample = SampleDim{axis, 1}, .masked = std::move(masked)};
}

bool MovesOnly(const Node& node) {
  return IsOneOf(node,
                 {"Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"});
}

}  // namespace

bool MaskedSums::Follow(int n) {
  const Node& node = graph_.nodes[n];
  const bool reads_masked = absl::c_any_of(node.inputs, [&](ValueId id) {
    return id != kNoValue && (states_.masks().IsMask(id) || states_[id].masked.has_value());
  });
  if (!reads_masked || absl::c_any_of(node.inputs, [&](ValueId id) { return IsUnknown(id); })) {
    return false;
  }
  std::optional<SampleState> state;
  if (node.op == "Mul") state = OfMul(n);
  if (node.op == "Where") state = OfWhere(n);
  if (node.op == "ReduceSum" || node.op == "ReduceMax") state = OfReduction(n);
  if (node.op == "MatMul") state = OfMatMul(n);
  if (node.op == "CumSum") state = OfCumSum(n);
  if (!state.has_value()) state = OfCounts(n);
  if (!state.has_value()) return false;
  states_[node.outputs[0]] = *std::move(state);
  return true;
}

bool MaskedSums::IsUnknown(ValueId id) const {
  return id != kNoValue && (states_[id].mixed_by >= 0 || states_[id].pair.has_value());
}

std::optional<MaskedSamples> MaskedSums::ZerosOf(int n, ValueId id) {
  InputMasks& masks = states_.masks();
  if (const auto& masked = states_[id].masked; masked.has_value()) {
    return masked->hidden == Hidden::kZero ? masked : std::nullopt;
  }
  if (!masks.IsMask(id) || !masks.GrowsOnce(id)) return std::nullopt;
  const InputMasks::Choices choices = masks.Fitting(id, IsZero, AreFinite);
  if (choices == 0) return std::nullopt;
  return MaskedSamples{Hidden::kZero, masks.InputOf(id), choices, n};
}

int MaskedSums::AxisOf(ValueId id) const {
  return states_[id].masked.has_value() ? states_[id].sample->axis : states_.masks().AxisOf(id);
}

bool MaskedSums::IsFinite(ValueId id) const {
  const auto is_small = [](double element) {
    return std::abs(element) <= SampleStates::kMostInScores;
  };
  return graph_.IsConstant(id) ? states_.AreAllOf(id, is_small)
                               : states_[id].numbers.finite == PaddingNumbers::Finite::kProven;
}

bool MaskedSums::IsOrdinary(const Node& node, ValueId id, int axis) const {
  return IsFinite(id) &&
         (!states_[id].depends || states_.HasSamples(id, axis - states_.ShiftOf(node, id)));
}

bool MaskedSums::IsMaskOf(ValueId id, int input) const {
  return states_.masks().IsMask(id) && states_.masks().InputOf(id) == input;
}

void MaskedSums::ReadAsOrdinary(int n, ValueId id) {
  if (states_.masks().IsMask(id)) states_.masks().ReadBy(n, states_.masks().InputOf(id));
}

bool MaskedSums::GrowsAlong(const Node& node, int axis) const {
  return states_.GrowingOf(node.outputs[0]) == std::vector{axis};
}

size_t MaskedSums::IndexOfMask(int n) {
  const Node& node = graph_.nodes[n];
  const auto size_of = [&](ValueId id) {
    const std::optional<MaskedSamples> zeros = ZerosOf(n, id);
    return zeros.has_value() ? graph_.value(graph_.inputs[zeros->input]).type.elements()
                             : std::numeric_limits<int64_t>::max();
  };
  return size_of(node.inputs[1]) < size_of(node.inputs[0]) ? 1 : 0;
}

bool MaskedSums::Require(int n, const MaskedSamples& masked) {
  return states_.masks().RequireForSum(n, masked.input, masked.choices);
}

// Zeros at the padding times numbers that are finite there.
std::optional<SampleState> MaskedSums::OfMul(int n) {
  const Node& node = graph_.nodes[n];
  const size_t i = IndexOfMask(n);
  const ValueId masked = node.inputs[i], other = node.inputs[1 - i];
  std::optional<MaskedSamples> zeros = ZerosOf(n, masked);
  if (!zeros.has_value()) return std::nullopt;
  const int axis = AxisOf(masked) + states_.ShiftOf(node, masked);
  if (!GrowsAlong(node, axis)) return std::nullopt;
  const bool is_same = IsMaskOf(other, zeros->input);
  if (is_same || states_[other].masked.has_value()) {
    // The same mask may have been multiplied before.
    const std::optional<MaskedSamples> others = ZerosOf(n, other);
    if (!others.has_value() || others->input != zeros->input ||
        AxisOf(other) + states_.ShiftOf(node, other) != axis) {
      return std::nullopt;
    }
    zeros->choices &= others->choices;
  } else if (IsOrdinary(node, other, axis)) {
    ReadAsOrdinary(n, other);
  } else {
    return std::nullopt;
  }
  return SamplesAlong(axis, *zeros);
}

// Samples that a mask replaces by zeros or by numbers that are too low for a maximum.
std::optional<SampleState> MaskedSums::OfWhere(int n) {
  const Node& node = graph_.nodes[n];
  InputMasks& masks = states_.masks();
  const ValueId mask = node.inputs[0];
  if (!masks.IsMask(mask) || !masks.GrowsOnce(mask)) return std::nullopt;
  const bool replaces_second = graph_.IsConstant(node.inputs[1]);
  const ValueId other = node.inputs[replaces_second ? 1 : 2],
                kept = node.inputs[replaces_second ? 2 : 1];
  if (graph_.IsConstant(kept) || IsMaskOf(kept, masks.InputOf(mask)) ||
      states_[kept].masked.has_value()) {
    return std::nullopt;
  }
  const auto selects = [](bool second, const Extremes& condition) {
    return second ? condition.least > 0 : condition.most == 0;
  };
  const int axis = AxisOf(mask) + states_.ShiftOf(node, mask);
  const SampleState& state = states_[kept];
  const bool is_placed =
      !state.depends || states_.HasSamples(kept, axis - states_.ShiftOf(node, kept));
  if (!is_placed || !GrowsAlong(node, axis)) return std::nullopt;
  const bool is_zero = states_.AreAll(other, [](double element) { return element == 0; });
  // Samples that a constant has made low may be as low as any number.
  const double most = state.numbers.finite == PaddingNumbers::Finite::kNo
                          ? -std::numeric_limits<double>::infinity()
                          : SampleStates::kInputHides;
  const bool is_low = states_.AreAll(other, [&](double element) { return element <= most; });
  if (!is_zero && !is_low) return std::nullopt;
  const InputMasks::Choices choices = masks.Fitting(
      mask, [&](const Extremes& each) { return selects(replaces_second, each); },
      [&](const Extremes& each) { return selects(!replaces_second, each); });
  if (choices == 0) return std::nullopt;
  ReadAsOrdinary(n, kept);
  SampleState made = SamplesAlong(
      axis, MaskedSamples{is_zero ? Hidden::kZero : Hidden::kLow, masks.InputOf(mask), choices, n});
  // Nothing requires yet that the input hides the padding.
  made.numbers.finite = is_zero ? state.numbers.finite : PaddingNumbers::Finite::kNo;
  return made;
}

// A sum of zeros at the padding, or a maximum of low numbers there.
std::optional<SampleState> MaskedSums::OfReduction(int n) {
  const Node& node = graph_.nodes[n];
  const ValueId read = node.inputs[0];
  std::optional<MaskedSamples> masked = ZerosOf(n, read);
  if (node.op == "ReduceMax") {
    masked = states_[read].masked;
    if (!masked.has_value() || masked->hidden != Hidden::kLow) return std::nullopt;
  }
  // If the result does not grow, the dimension with the samples is reduced.
  if (!masked.has_value() || !states_.GrowingOf(node.outputs[0]).empty()) return std::nullopt;
  if (!Require(n, *masked)) return std::nullopt;
  return SampleState{.numbers = states_[read].numbers};
}

// A sum of products over the samples, one factor of which is 0 at the padding.
std::optional<SampleState> MaskedSums::OfMatMul(int n) {
  const Node& node = graph_.nodes[n];
  if (!states_.GrowingOf(node.outputs[0]).empty()) return std::nullopt;
  const int ranks[] = {static_cast<int>(states_.ShapeOf(node.inputs[0]).size()),
                       static_cast<int>(states_.ShapeOf(node.inputs[1]).size())};
  if (ranks[0] < 2 || ranks[1] < 2) return std::nullopt;
  const int summed[] = {ranks[0] - 1, ranks[1] - 2};
  const size_t i = IndexOfMask(n);
  const ValueId masked = node.inputs[i], other = node.inputs[1 - i];
  const std::optional<MaskedSamples> zeros = ZerosOf(n, masked);
  if (!zeros.has_value() || AxisOf(masked) != summed[i] || IsMaskOf(other, zeros->input) ||
      states_[other].masked.has_value() || !IsFinite(other) ||
      !states_.HasSamples(other, summed[1 - i]) || !Require(n, *zeros)) {
    return std::nullopt;
  }
  ReadAsOrdinary(n, other);
  return SampleState{};
}

std::optional<SampleState> MaskedSums::OfCumSum(int n) {
  const Node& node = graph_.nodes[n];
  const NodeView view(graph_, node);
  const auto axis = view.Ints(1);
  const auto exclusive = view.Int("exclusive", 0), reverse = view.Int("reverse", 0);
  const std::optional<MaskedSamples> zeros = ZerosOf(n, node.inputs[0]);
  if (!axis.ok() || !exclusive.ok() || !reverse.ok() || *exclusive != 0 || *reverse != 0 ||
      !zeros.has_value()) {
    return std::nullopt;
  }
  const int64_t rank = view.Rank(0);
  const int samples = AxisOf(node.inputs[0]);
  if ((axis->front() + rank) % rank != samples || !GrowsAlong(node, samples)) return std::nullopt;
  if (!Require(n, *zeros)) return std::nullopt;
  return SamplesAlong(samples, MaskedSamples{Hidden::kCount, zeros->input, zeros->choices, n});
}

std::optional<SampleState> MaskedSums::OfCounts(int n) {
  const Node& node = graph_.nodes[n];
  if (!IsOneOf(node, {"Add", "Max", "Min", "Mul", "Sub", "Where"})) return std::nullopt;
  InputMasks& masks = states_.masks();
  std::optional<MaskedSamples> counts;
  int axis = -1;
  for (const ValueId id : node.inputs) {
    if (!states_[id].masked.has_value()) continue;
    if (states_[id].masked->hidden != Hidden::kCount) return std::nullopt;
    counts = states_[id].masked;
    axis = states_[id].sample->axis + states_.ShiftOf(node, id);
  }
  if (!counts.has_value() || !GrowsAlong(node, axis)) return std::nullopt;
  for (const ValueId id : node.inputs) {
    const SampleState& state = states_[id];
    if (masks.IsMask(id)) {
      const bool fits = masks.InputOf(id) == counts->input && masks.GrowsOnce(id) &&
                        masks.AxisOf(id) + states_.ShiftOf(node, id) == axis;
      if (!fits) return std::nullopt;
      counts->choices &= masks.Fitting(id, AreSmall, AreSmall);
    } else if (state.masked.has_value()) {
      if (state.masked->input != counts->input ||
          state.sample->axis + states_.ShiftOf(node, id) != axis) {
        return std::nullopt;
      }
      counts->choices &= state.masked->choices;
    } else if (!graph_.IsConstant(id) || !IsOrdinary(node, id, axis)) {
      return std::nullopt;
    }
  }
  counts->reader = n;
  if (!Require(n, *counts)) return std::nullopt;
  return SamplesAlong(axis, counts);
}

std::optional<MaskedSamples> MaskedSums::Kept(const Node& node) const {
  std::optional<MaskedSamples> kept;
  bool are_all = true;
  for (const ValueId id : node.inputs) {
    if (id == kNoValue || graph_.IsConstant(id)) continue;
    kept = states_[id].masked;
    are_all = are_all && kept.has_value();
  }
  if (!kept.has_value() || !are_all) return std::nullopt;
  if (MovesOnly(node)) return kept;
  const ir::DType to = graph_.value(node.outputs[0]).type.dtype;
  if (node.op == "Cast") {
    const bool stays_low = ir::IsFloat(to) && !ir::Saturates(to);
    return kept->hidden != Hidden::kLow || stays_low ? kept : std::nullopt;
  }
  const bool stays_count =
      kept->hidden == Hidden::kCount &&
      IsOneOf(node, {"Add", "Clip", "Concat", "MatMul", "Max", "Min", "Mul", "Sub"});
  return stays_count ? kept : std::nullopt;
}

void MaskedSums::FollowOther(int n) {
  const Node& node = graph_.nodes[n];
  if (const std::optional<MaskedSamples> kept = Kept(node); kept.has_value()) {
    SampleState& made = states_[node.outputs[0]];
    if (made.mixed_by < 0 && made.sample.has_value() && made.sample->block == 1) {
      made.masked = kept;
      return;
    }
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue || !states_[id].masked.has_value()) continue;
    // A count may be an index or an angle.
    const bool is_end = states_[id].masked->hidden == Hidden::kCount &&
                        (IsOneOf(node, {"Cos", "Sin"}) || (node.op == "Gather" && i == 1));
    if (!is_end) Read(id);
  }
}

void MaskedSums::Read(ValueId id) {
  const auto& masked = states_[id].masked;
  if (masked.has_value()) states_.masks().ReadBy(masked->reader, masked->input);
}

}  // namespace hone::graph
