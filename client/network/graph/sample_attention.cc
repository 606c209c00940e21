#include "client/network/graph/sample_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/samples.h"
#include "common/ir/dtype.h"

namespace hone::graph {

bool SampleAttention::Follow(int n) {
  const Node& node = graph_.nodes[n];
  const InputMasks& masks = states_.masks();
  for (const ValueId id : node.inputs) {
    if (id != kNoValue && states_[id].mixed_by >= 0 && !masks.IsMask(id)) return false;
  }
  const bool is_product = node.op == "MatMul", is_softmax = node.op == "Softmax";
  std::optional<SampleState> state = is_product   ? OfProduct(node)
                                     : is_softmax ? OfSoftmax(node)
                                                  : OfElementwise(node);
  if (!state.has_value()) return false;
  // Padding must not make each sample longer.
  const std::vector<int> followed = state->pair.has_value()
                                        ? std::vector{state->pair->row, state->pair->column}
                                        : std::vector{state->sample->axis};
  if (states_.GrowingOf(node.outputs[0]) != followed) return false;
  state->numbers.finite = FiniteAfter(node);
  states_[node.outputs[0]] = *state;
  if (!is_product && !is_softmax) return true;
  for (const ValueId id : node.inputs) {
    if (masks.IsMask(id)) states_.masks().ReadBy(n, masks.InputOf(id));
  }
  return true;
}

// Masks, which may be infinite, make no difference, because they only hide.
PaddingNumbers::Finite SampleAttention::FiniteAfter(const Node& node) const {
  auto finite = PaddingNumbers::Finite::kProven;
  for (const ValueId id : node.inputs) {
    if (states_.masks().IsMask(id) || graph_.IsConstant(id)) continue;
    finite = std::min(finite, states_[id].numbers.finite);
  }
  return finite;
}

// Queries with keys, and shares with values.
std::optional<SampleState> SampleAttention::OfProduct(const Node& node) {
  const ValueId a = node.inputs[0], b = node.inputs[1];
  const int a_rank = static_cast<int>(states_.ShapeOf(a).size()),
            b_rank = static_cast<int>(states_.ShapeOf(b).size()), rank = std::max(a_rank, b_rank);
  if (a_rank < 2 || b_rank < 2) return std::nullopt;
  // A score or value of the padding that is not finite would not be hidden.
  if (states_.FiniteInputsOf(node) == PaddingNumbers::Finite::kNo) return std::nullopt;
  if (states_.HasSamples(a, a_rank - 2) && states_.HasSamples(b, b_rank - 1)) {
    return SampleState{.depends = true, .pair = SamplePair{.row = rank - 2, .column = rank - 1}};
  }
  const std::optional<SamplePair>& shares = states_[a].pair;
  const bool fits = shares.has_value() && shares->hidden == Hidden::kZero &&
                    shares->row == a_rank - 2 && shares->column == a_rank - 1 &&
                    states_.HasSamples(b, b_rank - 2);
  if (!fits) return std::nullopt;
  if (shares->masked_by != SamplePair::kNoInput) {
    if (shares->plain == Plain::kNone) return std::nullopt;
    const InputMask::Needs needs =
        shares->plain == Plain::kAll ? InputMask::Needs::kOne : InputMask::Needs::kFirst;
    if (!states_.masks().Require(shares->masked_by, shares->choices, needs)) return std::nullopt;
  }
  return SampleState{.depends = true, .sample = SampleDim{rank - 2, 1}};
}

std::optional<SampleState> SampleAttention::OfSoftmax(const Node& node) const {
  const SampleState& scores = states_[node.inputs[0]];
  const int64_t rank = static_cast<int64_t>(states_.ShapeOf(node.inputs[0]).size());
  const auto axis = NodeView(graph_, node).AxisAttribute("axis", -1, rank);
  if (!scores.pair.has_value() || scores.pair->hidden != Hidden::kLow || !axis.ok() ||
      *axis != scores.pair->column) {
    return std::nullopt;
  }
  SampleState shares = scores;
  shares.pair->hidden = Hidden::kZero;
  return shares;
}

std::optional<SamplePair> SampleAttention::PairOf(const Node& node) const {
  std::optional<SamplePair> pair;
  for (const ValueId id : node.inputs) {
    if (id == kNoValue || !states_[id].pair.has_value() || states_.masks().IsMask(id)) continue;
    SamplePair moved = *states_[id].pair;
    moved.row += states_.ShiftOf(node, id);
    moved.column += states_.ShiftOf(node, id);
    // Constants are looked at one by one.
    if (graph_.IsConstant(id)) moved.plain = Plain::kAll;
    if (!pair.has_value()) {
      pair = moved;
      continue;
    }
    if (pair->row != moved.row || pair->column != moved.column) return std::nullopt;
    pair->plain = std::min(pair->plain, moved.plain);
    pair->is_lowered = pair->is_lowered || moved.is_lowered;
    if (moved.masked_by == SamplePair::kNoInput) continue;
    if (pair->masked_by == SamplePair::kNoInput) {
      pair->masked_by = moved.masked_by;
      pair->choices = moved.choices;
    } else if (pair->masked_by != moved.masked_by) {
      return std::nullopt;
    } else {
      pair->choices &= moved.choices;
    }
  }
  return pair;
}

std::optional<SampleState> SampleAttention::OfElementwise(const Node& node) {
  if (!IsOneOf(node, {"Add", "Cast", "Div", "Identity", "IsNaN", "Mul", "Sub", "Tanh", "Where"})) {
    return std::nullopt;
  }
  std::optional<SamplePair> pair = PairOf(node);
  if (!pair.has_value()) return std::nullopt;
  if (absl::c_any_of(node.inputs, [&](ValueId id) { return states_.masks().IsMask(id); })) {
    return OfMasked(node, *pair);
  }
  for (const ValueId id : node.inputs) {
    const SampleState& state = states_[id];
    if (!state.depends || state.pair.has_value()) continue;
    // It may be a mask, which may hide all that a row sees.
    if (!graph_.IsConstant(id)) return std::nullopt;
    if (!states_.HasSamples(id, pair->row - states_.ShiftOf(node, id)) &&
        !states_.HasSamples(id, pair->column - states_.ShiftOf(node, id))) {
      return std::nullopt;
    }
  }
  pair->plain = PlainAfter(node, *pair);
  pair->hidden = HiddenBy(node, *pair);
  const bool reads_large = absl::c_any_of(
      node.inputs, [&](ValueId id) { return graph_.IsConstant(id) && !IsSmall(node, id); });
  const bool was_low = absl::c_any_of(node.inputs, [&](ValueId id) {
    const std::optional<SamplePair>& read = states_[id].pair;
    return !graph_.IsConstant(id) && read.has_value() && read->hidden == Hidden::kLow;
  });
  // A score that was low may be huge now. So may a quotient of scores.
  const bool may_be_huge =
      reads_large || was_low || (node.op == "Div" && states_[node.inputs[1]].pair.has_value());
  pair->is_lowered = pair->is_lowered || (may_be_huge && pair->hidden == Hidden::kNothing);
  if (pair->masked_by != SamplePair::kNoInput) {
    const bool is_known = pair->hidden == Hidden::kZero || node.op == "IsNaN" ||
                          (pair->hidden == Hidden::kLow && pair->plain != Plain::kNone);
    if (!is_known) return std::nullopt;
  }
  return SampleState{.depends = true, .pair = pair};
}

SamplePair::Plain SampleAttention::PlainAfter(const Node& node, const SamplePair& pair) const {
  // A quotient of scores may be infinite.
  if (node.op == "Div" && states_[node.inputs[1]].pair.has_value()) return Plain::kNone;
  Plain plain = pair.plain;
  const auto shows = [](double added) {
    return added >= SampleStates::kShows && added <= SampleStates::kMostInScores;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (!graph_.IsConstant(id)) {
      if (!states_[id].pair.has_value()) return Plain::kNone;
      continue;
    }
    if (IsSmall(node, id)) continue;
    bool is_first = node.op == "Add" && AreAllInFirst(node, id, pair, shows);
    if (node.op == "Where" && i > 0 && graph_.IsConstant(node.inputs[0])) {
      // The other value is selected.
      is_first = AreAllInFirst(node, node.inputs[0], pair,
                               [&](double condition) { return (condition != 0) == (i == 2); });
    }
    const auto is_no_more = [](double element) { return element <= SampleStates::kMostInScores; };
    if (!is_first || !states_.AreAllOf(id, is_no_more)) return Plain::kNone;
    plain = std::min(plain, Plain::kFirst);
  }
  return plain;
}

bool SampleAttention::IsSmall(const Node& node, ValueId id) const {
  const bool divides = node.op == "Div" && node.inputs[1] == id;
  return states_.AreAllOf(id, [&](double element) {
    const double size = std::abs(element);
    return size <= SampleStates::kMostInScores &&
           (!divides || size >= 1 / SampleStates::kMostInScores);
  });
}

// Scores or shares to which a mask is added, or which it selects.
std::optional<SampleState> SampleAttention::OfMasked(const Node& node, SamplePair pair) {
  const InputMasks& masks = states_.masks();
  const bool adds = node.op == "Add", selects = node.op == "Where";
  if (!adds && !selects) return std::nullopt;
  const ValueId mask = selects || masks.IsMask(node.inputs[0]) ? node.inputs[0] : node.inputs[1];
  if (!masks.IsMask(mask) || masks.AxisOf(mask) + states_.ShiftOf(node, mask) != pair.column) {
    return std::nullopt;
  }
  const bool is_masked = pair.masked_by != SamplePair::kNoInput;
  if (pair.plain == Plain::kNone || (pair.is_lowered && pair.hidden == Hidden::kNothing) ||
      (is_masked && (pair.masked_by != masks.InputOf(mask) || pair.hidden == Hidden::kNothing))) {
    return std::nullopt;
  }
  return adds ? OfAddedMask(mask, pair) : OfSelectingMask(node, pair);
}

std::optional<SampleState> SampleAttention::MaskedBy(int input, SamplePair pair,
                                                     InputMasks::Choices for_all,
                                                     InputMasks::Choices for_first) const {
  if (pair.masked_by != SamplePair::kNoInput) {
    for_all &= pair.choices;
    for_first &= pair.choices;
  }
  if (for_all == 0 && for_first == 0) return std::nullopt;
  if (for_all == 0) pair.plain = std::min(pair.plain, Plain::kFirst);
  pair.choices = for_all == 0 ? for_first : for_all;
  pair.masked_by = input;
  if (pair.hidden == Hidden::kNothing) pair.hidden = Hidden::kLow;
  return SampleState{.depends = true, .pair = pair};
}

std::optional<SampleState> SampleAttention::OfAddedMask(ValueId mask, SamplePair pair) {
  if (pair.hidden == Hidden::kZero) return std::nullopt;
  // Scores that are low already stay so.
  const double most =
      pair.hidden == Hidden::kLow ? SampleStates::kMostInScores : SampleStates::kInputHides;
  const auto fitting = [&](InputMasks::Elements shown) {
    return states_.masks().Fitting(
        mask, [&](const auto& added) { return added.most <= most; },
        [](const auto& added) {
          return added.least >= SampleStates::kShows && std::isfinite(added.most);
        },
        shown);
  };
  return MaskedBy(states_.masks().InputOf(mask), pair, fitting(InputMasks::Elements::kAll),
                  fitting(InputMasks::Elements::kFirst));
}

std::optional<SampleState> SampleAttention::OfSelectingMask(const Node& node, SamplePair pair) {
  InputMasks& masks = states_.masks();
  const ValueId mask = node.inputs[0];
  // Which of the two values the scores are.
  const bool scores_are_second =
      states_[node.inputs[1]].pair.has_value() && !graph_.IsConstant(node.inputs[1]);
  const ValueId scores = node.inputs[scores_are_second ? 1 : 2],
                other = node.inputs[scores_are_second ? 2 : 1];
  if (!states_[scores].pair.has_value() || masks.IsMask(scores)) return std::nullopt;
  const auto selects_scores = [&](const InputMasks::Extremes& condition) {
    return scores_are_second ? condition.least > 0 : condition.most == 0;
  };
  const auto selects_other = [&](const InputMasks::Extremes& condition) {
    return scores_are_second ? condition.most == 0 : condition.least > 0;
  };
  const auto any = [](const InputMasks::Extremes&) { return true; };
  const int input = masks.InputOf(mask);
  if (pair.hidden == Hidden::kZero) {
    if (pair.masked_by == SamplePair::kNoInput ||
        !states_.AreAll(other, [](double element) { return element == 0; })) {
      return std::nullopt;
    }
    return MaskedBy(input, pair, masks.Fitting(mask, any, selects_scores),
                    masks.Fitting(mask, any, selects_scores, InputMasks::Elements::kFirst));
  }
  if (!states_.AreAll(other, [](double element) { return element <= SampleStates::kInputHides; })) {
    return std::nullopt;
  }
  // Scores that are low already stay so, whichever of the two is selected.
  const auto fitting = [&](InputMasks::Elements shown) {
    return pair.hidden == Hidden::kLow ? masks.Fitting(mask, any, selects_scores, shown)
                                       : masks.Fitting(mask, selects_other, selects_scores, shown);
  };
  return MaskedBy(input, pair, fitting(InputMasks::Elements::kAll),
                  fitting(InputMasks::Elements::kFirst));
}

SamplePair::Hidden SampleAttention::HiddenBy(const Node& node, const SamplePair& pair) const {
  const auto input = [&](size_t i) { return node.inputs[i]; };
  if (node.op == "Identity") return states_[input(0)].pair->hidden;
  if (node.op == "Cast") {  // low scores stay low if the type has no bounds
    const ir::DType to = graph_.value(node.outputs[0]).type.dtype;
    return ir::IsFloat(to) && !ir::Saturates(to) ? states_[input(0)].pair->hidden
                                                 : Hidden::kNothing;
  }
  if (node.op == "Where" && IsZeroBehind(input(1)) && IsZeroBehind(input(2))) {
    return Hidden::kZero;
  }
  if (pair.masked_by != SamplePair::kNoInput) return StaysHidden(node);
  if (pair.is_lowered) return Hidden::kNothing;
  if (node.op == "Where") {
    const auto shows = [](double mask, bool is_behind) { return (mask == 0) == is_behind; };
    const auto hides = [](double mask, bool is_behind) { return (mask != 0) == is_behind; };
    if (IsLow(input(2)) && IsCausalMask(input(0), shows)) return Hidden::kLow;
    if (IsLow(input(1)) && IsCausalMask(input(0), hides)) return Hidden::kLow;
  }
  if (node.op == "Add") {
    const auto adds = [](double mask, bool is_behind) {
      return is_behind ? mask <= SampleStates::kHides
                       : mask >= SampleStates::kShows && std::isfinite(mask);
    };
    if (IsCausalMask(input(0), adds) || IsCausalMask(input(1), adds)) return Hidden::kLow;
  }
  return Hidden::kNothing;
}

SamplePair::Hidden SampleAttention::StaysHidden(const Node& node) const {
  const auto is_low = [&](ValueId id) {
    return states_[id].pair.has_value() && states_[id].pair->hidden == Hidden::kLow;
  };
  if (node.op == "Add") {
    const auto is_no_more = [](double added) { return added <= SampleStates::kMostInScores; };
    for (const size_t i : {0, 1}) {
      if (is_low(node.inputs[i]) && states_.AreAllOf(node.inputs[1 - i], is_no_more)) {
        return Hidden::kLow;
      }
    }
  }
  if (node.op == "Where" && graph_.IsConstant(node.inputs[0])) {
    for (const size_t i : {1, 2}) {
      if (is_low(node.inputs[i]) && IsLow(node.inputs[3 - i])) return Hidden::kLow;
    }
  }
  return Hidden::kNothing;
}

bool SampleAttention::IsZeroBehind(ValueId id) const {
  const std::optional<SamplePair>& pair = states_[id].pair;
  return pair.has_value() ? pair->hidden == Hidden::kZero
                          : states_.AreAll(id, [](double element) { return element == 0; });
}

template <typename Fits>
bool SampleAttention::IsCausalMask(ValueId id, const Fits& fits) const {
  const Value& value = graph_.value(id);
  const std::optional<SamplePair>& pair = states_[id].pair;
  if (!value.constant.has_value() || !pair.has_value()) return false;
  const char* const elements = value.constant->bytes().data();
  for (int64_t at = 0; at < value.type.elements(); ++at) {
    const int64_t row = PositionOf(value.type.shape, at, pair->row),
                  column = PositionOf(value.type.shape, at, pair->column);
    if (column < row) continue;
    const double element = ir::ReadElement(value.type.dtype, elements, at).real();
    if (!fits(element, column > row)) return false;
  }
  return true;
}

bool SampleAttention::IsLow(ValueId id) const {
  return states_.AreAll(id, [](double element) { return element <= SampleStates::kHides; });
}

template <typename Wanted>
bool SampleAttention::AreAllInFirst(const Node& node, ValueId id, const SamplePair& pair,
                                    const Wanted& wanted) const {
  const Value& value = graph_.value(id);
  const int axis = pair.column - states_.ShiftOf(node, id);
  const char* const elements = value.constant->bytes().data();
  for (int64_t at = 0; at < value.type.elements(); ++at) {
    if (axis >= 0 && PositionOf(value.type.shape, at, axis) != 0) continue;
    if (!wanted(ir::ReadElement(value.type.dtype, elements, at).real())) return false;
  }
  return true;
}

}  // namespace hone::graph
