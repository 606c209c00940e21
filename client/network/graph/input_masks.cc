#include "client/network/graph/input_masks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/samples.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"

namespace hone::graph {
namespace {

// The most elements that are computed for one mask, by all of its nodes.
constexpr int64_t kMostMaskElements = int64_t{1} << 24;

// Values of an element of a mask. Those of 0 and 1 are tried first. Masks of -10000 for a 0 do not
// hide for sure, but a much lower element makes them do so, and a 0 then shows, like a 1.
struct MaskValues {
  double hides, shows;
  bool is_extreme;
};
constexpr double kLowInteger = -0x1p62, kLowFloat = -1e30;
constexpr MaskValues kMaskValues[] = {{0, 1, false},          {1, 0, false},
                                      {kLowInteger, 0, true}, {kLowInteger, 1, true},
                                      {kLowFloat, 0, true},   {kLowFloat, 1, true}};

bool CanHave(ir::DType dtype, const MaskValues& values) {
  if (ir::IsPacked(dtype)) return false;
  if (!values.is_extreme) return true;
  if (values.hides == kLowInteger) return dtype == ir::DType::kI64;
  return dtype == ir::DType::kF32 || dtype == ir::DType::kF64 || dtype == ir::DType::kBF16;
}

ir::Scalar ElementFor(ir::DType dtype, double value) {
  return ir::IsFloat(dtype) ? ir::Scalar(value)
                            : ir::CastTo(dtype, ir::Scalar(static_cast<int64_t>(value)));
}

std::string BytesOfElement(ir::DType dtype, double value) {
  return Encode({dtype, {}}, {ElementFor(dtype, value)});
}

// Whether a node has no other elements than its first input.
bool MovesElements(const Node& node) {
  static constexpr absl::string_view kMoving[] = {"Expand",  "Identity",  "Reshape",  "Slice",
                                                  "Squeeze", "Transpose", "Unsqueeze"};
  return absl::c_linear_search(kMoving, node.op);
}

// Whether each element of a node depends on the elements of its inputs at the same place.
bool IsElementwise(const Node& node) {
  static constexpr absl::string_view kElementwise[] = {
      "Add",  "And",         "Cast", "Clip", "Div", "Equal", "Greater", "GreaterOrEqual",
      "Less", "LessOrEqual", "Max",  "Min",  "Mul", "Neg",   "Not",     "Or",
      "Sub",  "Where",       "Xor"};
  return absl::c_linear_search(kElementwise, node.op);
}

// Whether integers of this node cannot overflow for an element of -2^62.
bool IsExactFor(const Node& node, ir::DType from, ir::DType to) {
  if (ir::IsFloat(to) || to == ir::DType::kBool) return true;
  return from == to && (MovesElements(node) || node.op == "Sub");
}

}  // namespace

InputMasks::InputMasks(const Graph& graph, int64_t samples, const std::vector<int>& axes,
                       const std::map<ValueId, std::vector<int>>& growing)
    : graph_(graph), axes_(axes), growing_(growing) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueId id = graph.inputs[i];
    if (axes[i] == kNoAxis) continue;
    input_growing_[id] = {axes[i]};
    const std::vector<int64_t>& shape = graph.value(id).type.shape;
    if (shape[axes[i]] != samples) continue;
    Mask mask{.input = static_cast<int>(i)};
    for (size_t d = 0; d < shape.size(); ++d) {
      mask.axes.push_back(shape[d] == 1 ? kNoAxis : static_cast<int>(d));
    }
    masks_[id] = std::move(mask);
  }
}

const std::vector<int>& InputMasks::GrowingOf(ValueId id) const {
  static const std::vector<int> kNone;
  const auto of_input = input_growing_.find(id);
  if (of_input != input_growing_.end()) return of_input->second;
  const auto found = growing_.find(id);
  return found == growing_.end() ? kNone : found->second;
}

int InputMasks::AxisOf(ValueId id) const {
  const Mask& mask = masks_.at(id);
  return mask.axes[axes_[mask.input]];
}

bool InputMasks::Follow(int n, const Group& group) {
  const Node& node = graph_.nodes[n];
  if (group.outputs.size() != 1) return false;
  const ValueId output = group.outputs[0];
  std::optional<Mask> mask;
  for (const ValueId id : group.inputs) {
    const auto read = masks_.find(id);
    if (read == masks_.end()) {
      if (!graph_.IsConstant(id)) return false;
      continue;
    }
    if (mask.has_value() && mask->input != read->second.input) return false;
    const bool is_exact =
        read->second.is_exact && (!mask.has_value() || mask->is_exact) &&
        IsExactFor(node, graph_.value(id).type.dtype, graph_.value(output).type.dtype);
    mask = Mask{.input = read->second.input, .is_exact = is_exact};
  }
  if (!mask.has_value() || !FollowLoads(group, output, *mask)) return false;
  masks_[output] = *std::move(mask);
  producers_[output] = n;
  return true;
}

// Finds the dimensions of a mask from the indices with which its only stage reads. Each element
// must read all tensors at its own position, in each dimension that grows.
bool InputMasks::FollowLoads(const Group& group, ValueId output, Mask& mask) const {
  const ir::Workload& workload = group.workload;
  if (workload.stages.size() != 1) return false;
  const ir::Stage& stage = workload.stages[0];
  if (!stage.reduce.empty() || !stage.guards.empty() || stage.values.size() != 1) return false;
  std::map<ir::AtomId, int> axes, growing;
  for (size_t d = 0; d < stage.spatial.size(); ++d) {
    axes[stage.spatial[d].var] = static_cast<int>(d);
    if (absl::c_linear_search(GrowingOf(output), static_cast<int>(d))) {
      growing[stage.spatial[d].var] = static_cast<int>(d);
    }
  }
  std::map<ir::BufferId, ValueId> values;
  const std::vector<ir::BufferId> inputs = workload.Inputs();
  for (size_t i = 0; i < inputs.size(); ++i) values[inputs[i]] = group.inputs[i];
  bool fits = true;
  workload.pool.Visit(stage.values[0], [&](const ir::Expr& expr) {
    if (!fits || expr.indices < 0) return;
    const auto value = values.find(expr.buffer);
    fits = expr.op == ir::Op::kLoad && expr.gathered < 0 && value != values.end();
    if (!fits) return;
    const ValueId id = value->second;
    const ir::IndexList& indices = workload.pool.IndicesOf(expr);
    for (size_t d = 0; d < indices.size() && fits; ++d) {
      if (absl::c_linear_search(GrowingOf(id), static_cast<int>(d))) {
        const auto own = growing.find(indices[d].SingleAtom());
        fits = own != growing.end() &&
               graph_.value(id).type.shape[d] == stage.spatial[own->second].extent;
      } else {
        fits = absl::c_none_of(growing, [&](const auto& each) {
          return workload.atoms.DependsOn(indices[d], each.first);
        });
      }
    }
    const auto read = masks_.find(id);
    if (!fits || read == masks_.end()) return;
    std::vector<int> moved;
    for (const int axis : read->second.axes) {
      if (axis == kNoAxis) {
        moved.push_back(kNoAxis);
        continue;
      }
      const auto own = axes.find(indices[axis].SingleAtom());
      fits = fits && own != axes.end();
      if (fits) moved.push_back(own->second);
    }
    if (!fits) return;
    fits = mask.axes.empty() || mask.axes == moved;
    mask.axes = std::move(moved);
  });
  return fits && !mask.axes.empty();
}

std::set<int> InputMasks::NodesOf(ValueId id) const {
  std::set<int> nodes;
  std::vector<ValueId> open = {id};
  while (!open.empty()) {
    const auto producer = producers_.find(open.back());
    open.pop_back();
    if (producer == producers_.end() || !nodes.insert(producer->second).second) continue;
    for (const ValueId read : graph_.nodes[producer->second].inputs) {
      if (read != kNoValue) open.push_back(read);
    }
  }
  return nodes;
}

std::optional<ir::Scalars> InputMasks::ElementsOf(ValueId id, ir::Scalar value) const {
  const ValueId input = graph_.inputs[masks_.at(id).input];
  Graph part;
  part.values = graph_.values;
  part.inputs = {input};
  part.outputs = {id};
  int64_t elements = 0;
  for (const int n : NodesOf(id)) {
    part.nodes.push_back(graph_.nodes[n]);
    elements += graph_.value(graph_.nodes[n].outputs[0]).type.elements();
  }
  if (elements > kMostMaskElements) return std::nullopt;
  auto computed =
      Interpret(part, {ir::Scalars(graph_.value(input).type.elements(), std::move(value))});
  if (!computed.ok()) return std::nullopt;
  return std::move(computed->front());
}

std::optional<ir::Scalar> InputMasks::OnlyElementOf(ValueId id, ir::Scalar value) const {
  const ValueId input = graph_.inputs[masks_.at(id).input];
  Graph part;
  part.inputs = {part.AddValue("mask", {graph_.value(input).type.dtype, {1}})};
  std::map<ValueId, ValueId> renamed = {{input, part.inputs[0]}};
  for (const int n : NodesOf(id)) {
    Node node = graph_.nodes[n];
    if (MovesElements(node)) {
      renamed[node.outputs[0]] = renamed.at(node.inputs[0]);
      continue;
    }
    if (!IsElementwise(node)) return std::nullopt;
    for (ValueId& read : node.inputs) {
      if (read == kNoValue) continue;
      const Value& constant = graph_.value(read);
      if (!constant.constant.has_value()) {
        read = renamed.at(read);
        continue;
      }
      if (constant.type.elements() != 1) return std::nullopt;
      read = part.AddConstant(constant.name, constant.type, *constant.constant);
    }
    const ValueId made = node.outputs[0];
    node.outputs.clear();
    if (!part.AddNode(std::move(node), {graph_.value(made).name}).ok()) return std::nullopt;
    renamed[made] = part.nodes.back().outputs[0];
  }
  part.outputs = {renamed.at(id)};
  const auto computed = Interpret(part, {ir::Scalars(1, std::move(value))});
  if (!computed.ok() || computed->front().size() != 1) return std::nullopt;
  return computed->front().front();
}

std::optional<InputMasks::Bounds> InputMasks::BoundsOf(ValueId id, ir::Scalar value) {
  // Each layer may have its own slice of a mask.
  for (auto at = producers_.find(id);
       at != producers_.end() && MovesElements(graph_.nodes[at->second]);
       at = producers_.find(id)) {
    id = graph_.nodes[at->second].inputs[0];
  }
  const ir::DType dtype = graph_.value(graph_.inputs[masks_.at(id).input]).type.dtype;
  const auto [entry, is_new] =
      known_.emplace(std::pair(id, Encode({dtype, {}}, {value})), std::nullopt);
  if (!is_new) return entry->second;
  const std::optional<ir::Scalar> only = OnlyElementOf(id, value);
  const std::optional<ir::Scalars> elements =
      only.has_value() ? ir::Scalars{*only} : ElementsOf(id, value);
  if (!elements.has_value()) return std::nullopt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Bounds bounds{{kInfinity, -kInfinity}, {kInfinity, -kInfinity}};
  const std::vector<int64_t>& shape = graph_.value(id).type.shape;
  for (size_t at = 0; at < elements->size(); ++at) {
    const double number = (*elements)[at].real();
    if (std::isnan(number)) return std::nullopt;
    const auto include = [&](Extremes& extremes) {
      extremes.least = std::min(extremes.least, number);
      extremes.most = std::max(extremes.most, number);
    };
    include(bounds.all);
    if (PositionOf(shape, static_cast<int64_t>(at), AxisOf(id)) == 0) include(bounds.first);
  }
  entry->second = bounds;
  return bounds;
}

InputMasks::Choices InputMasks::Fitting(ValueId id, absl::FunctionRef<bool(const Extremes&)> hides,
                                        absl::FunctionRef<bool(const Extremes&)> shows,
                                        Elements shown) {
  const Mask& mask = masks_.at(id);
  const ir::DType dtype = graph_.value(graph_.inputs[mask.input]).type.dtype;
  const auto hides_at = [&](double value) {
    const std::optional<Bounds> bounds = BoundsOf(id, ElementFor(dtype, value));
    return bounds.has_value() && hides(bounds->all);
  };
  const auto shows_at = [&](double value) {
    const std::optional<Bounds> bounds = BoundsOf(id, ElementFor(dtype, value));
    return bounds.has_value() && shows(shown == Elements::kAll ? bounds->all : bounds->first);
  };
  Choices choices = 0;
  for (size_t c = 0; c < std::size(kMaskValues); ++c) {
    const MaskValues& values = kMaskValues[c];
    if (!CanHave(dtype, values) || (values.is_extreme && !mask.is_exact)) continue;
    if (!hides_at(values.hides) || !shows_at(values.shows)) continue;
    // A caller may give a negative zero, too.
    if (values.shows == 0 && ir::IsFloat(dtype) && !shows_at(-0.0)) continue;
    choices |= Choices{1} << c;
  }
  return choices;
}

bool InputMasks::Require(int input, Choices choices, InputMask::Needs needs) {
  const auto required = required_.find(input);
  if (required != required_.end()) choices &= required->second.choices;
  if (choices == 0) return false;
  Requirement& entry = required_[input];
  entry.choices = choices;
  entry.needs = std::max(entry.needs, needs);
  return true;
}

bool InputMasks::RequireForSum(int node, int input, Choices choices) {
  if (!Require(input, choices, InputMask::Needs::kNothing)) return false;
  Requirement& entry = required_[input];
  if (entry.node < 0) entry.node = node;
  return true;
}

absl::StatusOr<std::vector<InputMask>> InputMasks::Chosen() const {
  std::vector<InputMask> chosen;
  for (const auto& [input, requirement] : required_) {
    const Value& value = graph_.value(graph_.inputs[input]);
    if (const auto reader = readers_.find(input); reader != readers_.end()) {
      const Node& node = graph_.nodes[reader->second];
      std::string why;
      if (requirement.needs == InputMask::Needs::kNothing) {
        const Node& sum = graph_.nodes[requirement.node];
        why = absl::StrCat("node '", sum.name, "' (", sum.op, ") may mix the samples; ");
      }
      return absl::FailedPreconditionError(
          absl::StrCat(why, "input '", value.name, "' hides positions, but node '", node.name,
                       "' (", node.op, ") reads it in another way"));
    }
    std::optional<double> hides;
    InputMask mask{.input = input, .needs = requirement.needs};
    for (size_t c = 0; c < std::size(kMaskValues); ++c) {
      if ((requirement.choices >> c & 1) == 0 ||
          hides.value_or(kMaskValues[c].hides) != kMaskValues[c].hides) {
        continue;
      }
      hides = kMaskValues[c].hides;
      mask.shows.push_back(BytesOfElement(value.type.dtype, kMaskValues[c].shows));
    }
    mask.hides = BytesOfElement(value.type.dtype, *hides);
    chosen.push_back(std::move(mask));
  }
  return chosen;
}

}  // namespace hone::graph
