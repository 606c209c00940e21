#include "client/network/graph/samples.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/network/graph/group.h"
#include "client/network/graph/node_view.h"
#include "common/base/status_macros.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"

namespace hone::graph {
namespace {

// Element i of dimension `axis` belongs to sample i / block.
struct SampleDim {
  int axis = 0;
  int64_t block = 1;
};

// Two dimensions with an index for each sample: element (i, j) depends only on samples up to i or
// j, whichever is later, or on those that are no padding.
struct SamplePair {
  // What is known of the elements with j > i, or those of the padding: that they are too low to
  // have a share in a softmax over the columns, where element (i, i) or another one that is no
  // padding is not hidden, or 0.
  enum class Hidden { kNothing, kLow, kZero };
  int row = 0, column = 0;
  Hidden hidden = Hidden::kNothing;
  bool is_plain = true;  // no mask or large constant has changed the scores
  // The input that must hide the padding, and the choices for which the above is true.
  int masked_by = kNoInput;
  InputMasks::Choices choices = 0;

  static constexpr int kNoInput = -1;
};

// What is known of a tensor.
struct SampleState {
  bool depends = false;  // whether its elements depend on those of a sample
  // One of these is set if the samples are known on which each element depends: those up to its
  // own.
  std::optional<SampleDim> sample;
  std::optional<SamplePair> pair;
  int mixed_by = -1;  // the first node that may have mixed samples; -1: none has
};

// Follows the samples through the stages of a workload.
class SampleTracker {
 public:
  SampleTracker(const ir::Workload& workload, int64_t samples)
      : workload_(workload), samples_(samples), states_(workload.tensors.size()) {}

  // False if samples mix. `states` are those of the inputs, and then of the outputs.
  bool Run(const std::vector<SampleState>& inputs, std::vector<SampleState>& outputs) {
    const std::vector<ir::BufferId> in = workload_.Inputs();
    for (size_t i = 0; i < in.size(); ++i) states_[in[i]] = inputs[i];
    for (const ir::Stage& stage : workload_.stages) {
      const SampleState state = StateOf(stage);
      if (state.depends && !state.sample.has_value()) return false;
      for (const ir::BufferId tensor : stage.tensors) states_[tensor] = state;
    }
    for (const ir::BufferId id : workload_.Outputs()) outputs.push_back(states_[id]);
    return true;
  }

 private:
  SampleState StateOf(const ir::Stage& stage) {
    SampleState state;
    for (const ir::ExprId value : stage.values) {
      workload_.pool.VisitLoads(value, [&](const ir::Expr& load) {
        state.depends = state.depends || (states_[load.buffer].depends && !ReadsFirst(load));
      });
    }
    for (size_t d = 0; d < stage.spatial.size() && !state.sample.has_value(); ++d) {
      const int64_t extent = stage.spatial[d].extent;
      if (extent % samples_ != 0) continue;
      const SampleDim dim{static_cast<int>(d), extent / samples_};
      if (KeepsSamples(stage, dim)) state.sample = dim;
    }
    return state;
  }

  // Whether a load reads the first sample, which is never padding, for each element of the stage.
  bool ReadsFirst(const ir::Expr& load) const {
    const std::optional<SampleDim>& sample = states_[load.buffer].sample;
    if (!sample.has_value() || sample->axis == load.gathered) return false;
    const ir::Range range = workload_.atoms.RangeOf(workload_.pool.IndicesOf(load)[sample->axis]);
    return range.min >= 0 && range.max < sample->block;
  }

  // Whether element i of the stage's dimension reads only the sample i / block, and nothing else
  // that depends on the number of the sample.
  bool KeepsSamples(const ir::Stage& stage, const SampleDim& dim) {
    ir::AtomTable atoms = workload_.atoms;
    const ir::AtomId sample = atoms.AddVar("sample", samples_);
    ir::Index element = ir::Index::Of(sample, dim.block);
    if (dim.block > 1) element += ir::Index::Of(atoms.AddVar("element", dim.block));
    const auto divided = [&](const ir::Index& index) {
      return atoms.Substitute(index, {{stage.spatial[dim.axis].var, element}});
    };
    const auto has_sample = [&](const ir::Index& index) {
      return atoms.DependsOn(divided(index), sample);
    };
    bool keeps = true;
    for (const ir::Condition& guard : stage.guards) keeps = keeps && !has_sample(guard.index);
    for (const ir::ExprId value : stage.values) {
      workload_.pool.Visit(value, [&](const ir::Expr& expr) {
        if (expr.indices < 0) return;
        const ir::IndexList& indices = workload_.pool.IndicesOf(expr);
        const bool same = std::none_of(indices.begin(), indices.end(), has_sample);
        if (expr.op != ir::Op::kLoad) {
          keeps = keeps && same;
          return;
        }
        const SampleState& read = states_[expr.buffer];
        if ((!read.depends || ReadsFirst(expr)) && same) return;
        keeps = keeps && read.sample.has_value() && read.sample->axis != expr.gathered;
        if (!keeps) return;
        const ir::Index position = divided(indices[read.sample->axis]);
        const int64_t block = read.sample->block;
        // The position within the sample is the same for every sample.
        keeps = atoms.FloorDiv(position, block) == ir::Index::Of(sample) &&
                !atoms.DependsOn(atoms.Mod(position, block), sample);
        for (size_t i = 0; i < indices.size() && keeps; ++i) {
          keeps = static_cast<int>(i) == read.sample->axis || !has_sample(indices[i]);
        }
      });
    }
    return keeps;
  }

  const ir::Workload& workload_;
  const int64_t samples_;
  std::vector<SampleState> states_;
};

// The states of all tensors of a graph.
class SampleFlow {
 public:
  SampleFlow(const Graph& graph, int64_t samples, const SampleAxes& axes)
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

  // Sets the states of the outputs of a node or a step.
  void Follow(int node, const ir::Workload& workload, absl::Span<const ValueId> inputs,
              absl::Span<const ValueId> outputs) {
    std::vector<SampleState> read, made;
    SampleState mixed{.depends = true};
    for (const ValueId id : inputs) {
      read.push_back(states_[id]);
      if (mixed.mixed_by < 0) mixed.mixed_by = states_[id].mixed_by;
      if (mixed.mixed_by < 0 && states_[id].pair.has_value()) mixed.mixed_by = node;
    }
    if (mixed.mixed_by < 0 && !SampleTracker(workload, samples_).Run(read, made)) {
      mixed.mixed_by = node;
    }
    for (size_t o = 0; o < outputs.size(); ++o) {
      SampleState& state = states_[outputs[o]];
      state = mixed.mixed_by < 0 ? made[o] : mixed;
      const auto growing = axes_.growing.find(outputs[o]);
      if (state.mixed_by >= 0 || growing == axes_.growing.end()) continue;
      // Nodes that read this output must keep the samples apart, even if it is computed from
      // constants. If a second dimension grows, padding also makes each sample longer.
      state.depends = true;
      if (!state.sample.has_value() || growing->second != std::vector{state.sample->axis}) {
        state.mixed_by = node;
      }
    }
  }

  // Sets the states of the outputs of a node that is followed by itself.
  absl::Status FollowNode(int n) {
    const Node& node = graph_.nodes[n];
    const auto is_mask = [&](ValueId id) { return masks_.IsMask(id); };
    const bool reads_mask = absl::c_any_of(node.inputs, is_mask);
    if (!reads_mask && FollowAttention(n)) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const Group group, MakeGroup(graph_, {n}, "node"));
    if (reads_mask && !masks_.Follow(n, group)) {
      if (FollowAttention(n)) return absl::OkStatus();
      for (const ValueId id : node.inputs) masks_.ReadBy(n, id);
    }
    Follow(n, group.workload, group.inputs, group.outputs);
    return absl::OkStatus();
  }

  // The inputs that must hide the padding.
  absl::StatusOr<std::vector<InputMask>> Masks() const { return masks_.Chosen(); }

  absl::Status CheckOutputs() const {
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const SampleState& state = states_[graph_.outputs[o]];
      const int axis = axes_.outputs[o];
      if (state.mixed_by >= 0) {
        const Node& node = graph_.nodes[state.mixed_by];
        return absl::FailedPreconditionError(absl::StrCat(
            "node '", node.name, "' (", node.op, ") may mix the samples", WhyNotMasked(node)));
      }
      const bool kept =
          axis == kNoAxis ? !state.depends : state.sample.has_value() && state.sample->axis == axis;
      if (!kept) {
        return absl::FailedPreconditionError(absl::StrCat("output '",
                                                          graph_.value(graph_.outputs[o]).name,
                                                          "' does not have one part per sample"));
      }
    }
    return absl::OkStatus();
  }

 private:
  using Hidden = SamplePair::Hidden;
  // A mask that is added to scores hides those to which it adds this or less, and shows those to
  // which it adds this or more.
  static constexpr double kHides = -1e30, kShows = -1e6;
  // The same for a mask that is computed from an input, whose elements may have to be whole
  // numbers.
  static constexpr double kInputHides = -1e20;
  // The largest constant in scores that an input masks.
  static constexpr double kMostInScores = 1e6;

  // Follows a node of an attention over the samples. Returns false for other nodes.
  bool FollowAttention(int n) {
    const Node& node = graph_.nodes[n];
    for (const ValueId id : node.inputs) {
      if (id != kNoValue && states_[id].mixed_by >= 0 && !masks_.IsMask(id)) return false;
    }
    const bool is_product = node.op == "MatMul", is_softmax = node.op == "Softmax";
    const std::optional<SampleState> state = is_product   ? OfProduct(node)
                                             : is_softmax ? OfSoftmax(node)
                                                          : OfElementwise(node);
    if (!state.has_value()) return false;
    states_[node.outputs[0]] = *state;
    if (!is_product && !is_softmax) return true;
    for (const ValueId id : node.inputs) masks_.ReadBy(n, id);
    return true;
  }

  // Says that a mask of scores was not accepted; "" if the node has none.
  std::string WhyNotMasked(const Node& node) const {
    const bool has_scores = absl::c_any_of(
        node.inputs, [&](ValueId id) { return id != kNoValue && states_[id].pair.has_value(); });
    const auto mask = absl::c_find_if(node.inputs, [&](ValueId id) { return masks_.IsMask(id); });
    if (!has_scores || mask == node.inputs.end()) return "";
    return absl::StrCat("; it is not proven that its mask, which is computed from input '",
                        graph_.value(graph_.inputs[masks_.InputOf(*mask)]).name,
                        "', hides the padding");
  }

  const std::vector<int64_t>& ShapeOf(ValueId id) const { return graph_.value(id).type.shape; }

  // An input or constant that grows in these dimensions.
  void Begin(ValueId id, const std::vector<int>& dimensions) {
    const std::vector<int64_t>& shape = ShapeOf(id);
    SampleState& state = states_[id];
    state.depends = true;
    if (dimensions.size() == 1) {
      state.sample = SampleDim{dimensions[0], shape[dimensions[0]] / samples_};
    } else if (shape[dimensions[0]] == samples_ && shape[dimensions[1]] == samples_) {
      state.pair = SamplePair{.row = dimensions[0], .column = dimensions[1]};
    }
  }

  // Whether each index of a dimension is a sample.
  bool HasSamples(ValueId id, int axis) const {
    const std::optional<SampleDim>& sample = states_[id].sample;
    return sample.has_value() && sample->axis == axis && sample->block == 1;
  }

  // Queries with keys, and shares with values.
  std::optional<SampleState> OfProduct(const Node& node) {
    const ValueId a = node.inputs[0], b = node.inputs[1];
    const int a_rank = static_cast<int>(ShapeOf(a).size()),
              b_rank = static_cast<int>(ShapeOf(b).size()), rank = std::max(a_rank, b_rank);
    if (a_rank < 2 || b_rank < 2) return std::nullopt;
    if (HasSamples(a, a_rank - 2) && HasSamples(b, b_rank - 1)) {
      return SampleState{.depends = true, .pair = SamplePair{.row = rank - 2, .column = rank - 1}};
    }
    const std::optional<SamplePair>& shares = states_[a].pair;
    const bool fits = shares.has_value() && shares->hidden == Hidden::kZero &&
                      shares->row == a_rank - 2 && shares->column == a_rank - 1 &&
                      HasSamples(b, b_rank - 2);
    if (!fits) return std::nullopt;
    if (shares->masked_by != SamplePair::kNoInput &&
        !masks_.Require(shares->masked_by, shares->choices)) {
      return std::nullopt;
    }
    return SampleState{.depends = true, .sample = SampleDim{rank - 2, 1}};
  }

  std::optional<SampleState> OfSoftmax(const Node& node) const {
    const SampleState& scores = states_[node.inputs[0]];
    const int64_t rank = static_cast<int64_t>(ShapeOf(node.inputs[0]).size());
    const auto axis = NodeView(graph_, node).AxisAttribute("axis", -1, rank);
    if (!scores.pair.has_value() || scores.pair->hidden != Hidden::kLow || !axis.ok() ||
        *axis != scores.pair->column) {
      return std::nullopt;
    }
    SampleState shares = scores;
    shares.pair->hidden = Hidden::kZero;
    return shares;
  }

  // How many dimensions are before those of an input of a node with broadcasting.
  int ShiftOf(const Node& node, ValueId id) const {
    return static_cast<int>(ShapeOf(node.outputs[0]).size()) - static_cast<int>(ShapeOf(id).size());
  }

  // The pair of dimensions of a node whose inputs are broadcast, with what its inputs have in
  // common. nullopt: none has a pair, or they differ.
  std::optional<SamplePair> PairOf(const Node& node) const {
    std::optional<SamplePair> pair;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || !states_[id].pair.has_value()) continue;
      SamplePair moved = *states_[id].pair;
      moved.row += ShiftOf(node, id);
      moved.column += ShiftOf(node, id);
      if (!pair.has_value()) {
        pair = moved;
        continue;
      }
      if (pair->row != moved.row || pair->column != moved.column) return std::nullopt;
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

  std::optional<SampleState> OfElementwise(const Node& node) {
    static constexpr absl::string_view kOperators[] = {"Add", "Cast", "Div",  "Identity", "IsNaN",
                                                       "Mul", "Sub",  "Tanh", "Where"};
    if (!absl::c_linear_search(kOperators, node.op)) return std::nullopt;
    std::optional<SamplePair> pair = PairOf(node);
    if (!pair.has_value()) return std::nullopt;
    if (absl::c_any_of(node.inputs, [&](ValueId id) { return masks_.IsMask(id); })) {
      return OfMasked(node, *pair);
    }
    // A quotient of scores may be infinite.
    pair->is_plain = node.op != "Div" || !states_[node.inputs[1]].pair.has_value();
    for (const ValueId id : node.inputs) {
      const SampleState& state = states_[id];
      pair->is_plain = pair->is_plain &&
                       (graph_.IsConstant(id) ? IsSmall(node, id)
                                              : state.pair.has_value() && state.pair->is_plain);
      if (!state.depends || state.pair.has_value()) continue;
      // It may be a mask, which may hide all that a row sees.
      if (!graph_.IsConstant(id)) return std::nullopt;
      if (!HasSamples(id, pair->row - ShiftOf(node, id)) &&
          !HasSamples(id, pair->column - ShiftOf(node, id))) {
        return std::nullopt;
      }
    }
    pair->hidden = HiddenBy(node, pair->masked_by != SamplePair::kNoInput);
    if (pair->hidden == Hidden::kNothing && pair->masked_by != SamplePair::kNoInput &&
        node.op != "IsNaN") {
      return std::nullopt;
    }
    return SampleState{.depends = true, .pair = pair};
  }

  // Whether the elements of a constant that is added to scores, or by which they are multiplied or
  // divided, are small enough.
  bool IsSmall(const Node& node, ValueId id) const {
    const Value& value = graph_.value(id);
    const char* const elements = value.constant->bytes().data();
    const bool divides = node.op == "Div" && node.inputs[1] == id;
    for (int64_t at = 0; at < value.type.elements(); ++at) {
      const double element = std::abs(ir::ReadElement(value.type.dtype, elements, at).real());
      if (!(element <= kMostInScores) || (divides && element < 1 / kMostInScores)) return false;
    }
    return true;
  }

  // Scores or shares to which a mask is added, or which it selects.
  std::optional<SampleState> OfMasked(const Node& node, SamplePair pair) {
    const bool adds = node.op == "Add", selects = node.op == "Where";
    if (!adds && !selects) return std::nullopt;
    const ValueId mask = selects || masks_.IsMask(node.inputs[0]) ? node.inputs[0] : node.inputs[1];
    if (!masks_.IsMask(mask) || masks_.AxisOf(mask) + ShiftOf(node, mask) != pair.column) {
      return std::nullopt;
    }
    // The scores, and for Where, which of the two values they are.
    const bool scores_are_second = states_[node.inputs[1]].pair.has_value();
    const ValueId scores =
        adds ? node.inputs[node.inputs[0] == mask ? 1 : 0] : node.inputs[scores_are_second ? 1 : 2];
    if (!states_[scores].pair.has_value() || masks_.IsMask(scores)) return std::nullopt;
    const int input = masks_.InputOf(mask);
    const bool is_masked = pair.masked_by != SamplePair::kNoInput;
    if (is_masked ? pair.masked_by != input || pair.hidden == Hidden::kNothing
                  : pair.hidden != Hidden::kNothing || !pair.is_plain) {
      return std::nullopt;
    }
    InputMasks::Choices choices = 0;
    const auto any = [](const InputMasks::Extremes&) { return true; };
    if (adds) {
      if (pair.hidden == Hidden::kZero) return std::nullopt;
      choices = masks_.Fitting(
          mask, [](const auto& added) { return added.most <= kInputHides; },
          [](const auto& added) { return added.least >= kShows && std::isfinite(added.most); });
      if (is_masked) choices &= pair.choices;
    } else {
      const ValueId other = node.inputs[scores_are_second ? 2 : 1];
      const auto selects_scores = [&](const InputMasks::Extremes& condition) {
        return scores_are_second ? condition.least > 0 : condition.most == 0;
      };
      const auto selects_other = [&](const InputMasks::Extremes& condition) {
        return scores_are_second ? condition.most == 0 : condition.least > 0;
      };
      if (pair.hidden == Hidden::kZero) {
        if (!AreAll(other, [](double element) { return element == 0; })) return std::nullopt;
        choices = pair.choices & masks_.Fitting(mask, any, selects_scores);
      } else {
        if (!AreAll(other, [](double element) { return element <= kInputHides; })) {
          return std::nullopt;
        }
        choices = masks_.Fitting(mask, selects_other, selects_scores);
        if (is_masked) choices |= masks_.Fitting(mask, selects_scores, selects_scores);
        if (is_masked) choices &= pair.choices;
      }
    }
    if (choices == 0) return std::nullopt;
    pair.hidden = pair.hidden == Hidden::kZero ? Hidden::kZero : Hidden::kLow;
    pair.is_plain = false;
    pair.masked_by = input;
    pair.choices = choices;
    return SampleState{.depends = true, .pair = pair};
  }

  // `is_masked`: by an input, with which no constant mask may be combined.
  Hidden HiddenBy(const Node& node, bool is_masked) const {
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
    if (is_masked) return Hidden::kNothing;
    if (node.op == "Where") {
      const auto shows = [](double mask, bool is_behind) { return (mask == 0) == is_behind; };
      const auto hides = [](double mask, bool is_behind) { return (mask != 0) == is_behind; };
      if (IsLow(input(2)) && IsMask(input(0), shows)) return Hidden::kLow;
      if (IsLow(input(1)) && IsMask(input(0), hides)) return Hidden::kLow;
    }
    if (node.op == "Add") {
      const auto adds = [](double mask, bool is_behind) {
        return is_behind ? mask <= kHides : mask >= kShows && std::isfinite(mask);
      };
      if (IsMask(input(0), adds) || IsMask(input(1), adds)) return Hidden::kLow;
    }
    return Hidden::kNothing;
  }

  // Whether a tensor is 0 where shares are hidden.
  bool IsZeroBehind(ValueId id) const {
    const std::optional<SamplePair>& pair = states_[id].pair;
    return pair.has_value() ? pair->hidden == Hidden::kZero
                            : AreAll(id, [](double element) { return element == 0; });
  }

  // Whether a constant is a causal mask: `fits(element, true)` for all columns behind the row, and
  // `fits(element, false)` where they are the same.
  template <typename Fits>
  bool IsMask(ValueId id, const Fits& fits) const {
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

  // Whether all elements of a constant that does not grow are as wanted.
  bool AreAll(ValueId id, absl::FunctionRef<bool(double)> wanted) const {
    const Value& value = graph_.value(id);
    if (!value.constant.has_value() || states_[id].depends) return false;
    const char* const elements = value.constant->bytes().data();
    for (int64_t at = 0; at < value.type.elements(); ++at) {
      if (!wanted(ir::ReadElement(value.type.dtype, elements, at).real())) return false;
    }
    return true;
  }
  // Whether all elements of a constant are too low to have a share in a softmax.
  bool IsLow(ValueId id) const {
    return AreAll(id, [](double element) { return element <= kHides; });
  }

  const Graph& graph_;
  const int64_t samples_;
  const SampleAxes& axes_;
  InputMasks masks_;
  std::vector<SampleState> states_;
};

}  // namespace

absl::StatusOr<std::vector<InputMask>> CheckSamplesAreIndependent(const Graph& graph,
                                                                  int64_t samples,
                                                                  const SampleAxes& axes) {
  SampleFlow flow(graph, samples, axes);
  const std::vector<std::vector<int>> readers = graph.Consumers();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const bool is_needed = absl::c_any_of(graph.nodes[n].outputs, [&](ValueId id) {
      return id != kNoValue && (!readers[id].empty() || absl::c_linear_search(graph.outputs, id));
    });
    if (!is_needed) continue;
    HONE_RETURN_IF_ERROR(flow.FollowNode(static_cast<int>(n)));
  }
  HONE_RETURN_IF_ERROR(flow.CheckOutputs());
  return flow.Masks();
}

absl::Status CheckSamplesAreIndependent(const Graph& graph, const Partition& partition,
                                        int64_t samples, const SampleAxes& axes) {
  SampleFlow flow(graph, samples, axes);
  for (const Step& step : partition.steps) {
    flow.Follow(step.nodes[0], partition.tasks[step.task].workload, step.inputs, step.outputs);
  }
  return flow.CheckOutputs();
}

}  // namespace hone::graph
