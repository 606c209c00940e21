#include "client/network/graph/samples.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
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

// The position of an element in one dimension of a tensor.
int64_t PositionOf(const std::vector<int64_t>& shape, int64_t element, size_t dimension) {
  for (size_t d = shape.size() - 1; d > dimension; --d) element /= shape[d];
  return element % shape[dimension];
}

class SampleComparison {
 public:
  SampleComparison(const Graph& graph, int64_t samples, const Graph& other, int64_t other_samples)
      : graph_(graph), samples_(samples), other_(other), other_samples_(other_samples) {}

  absl::StatusOr<SampleAxes> Run() {
    if (graph_.nodes.size() != other_.nodes.size()) {
      return Differs("the number of nodes");
    }
    SampleAxes& axes = axes_;
    HONE_ASSIGN_OR_RETURN(axes.inputs, AxesOf(graph_.inputs, other_.inputs));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      HONE_RETURN_IF_ERROR(CompareNodes(graph_.nodes[n], other_.nodes[n]));
    }
    HONE_ASSIGN_OR_RETURN(axes.outputs, AxesOf(graph_.outputs, other_.outputs));
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const ValueId a = graph_.outputs[o], b = other_.outputs[o];
      const bool same = graph_.IsConstant(a) == other_.IsConstant(b) &&
                        (graph_.IsConstant(a) ? ConstantsFit(a, b)
                                              : graph_.value(a).name == other_.value(b).name);
      if (!same) return Differs(absl::StrCat("output '", graph_.value(a).name, "'"));
    }
    return axes;
  }

 private:
  absl::Status Differs(absl::string_view what) const {
    return absl::FailedPreconditionError(absl::StrCat(what, " depends on the size"));
  }

  // The dimensions that grow with the number of samples.
  absl::StatusOr<std::vector<int>> GrowingDimensions(const Value& value, const Value& other) const {
    const std::vector<int64_t>& shape = value.type.shape;
    const std::vector<int64_t>& others = other.type.shape;
    const absl::Status differs = Differs(absl::StrCat("the shape of '", value.name, "'"));
    if (value.type.dtype != other.type.dtype || shape.size() != others.size()) return differs;
    std::vector<int> growing;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == others[d]) continue;
      const bool in_proportion = shape[d] % samples_ == 0 && others[d] % other_samples_ == 0 &&
                                 shape[d] / samples_ == others[d] / other_samples_;
      if (!in_proportion) return differs;
      growing.push_back(static_cast<int>(d));
    }
    return growing;
  }

  // The only one of these dimensions.
  absl::StatusOr<int> AxisOf(const Value& value, const Value& other) const {
    HONE_ASSIGN_OR_RETURN(const std::vector<int> growing, GrowingDimensions(value, other));
    if (growing.size() > 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", value.name, "' has two dimensions that depend on the size"));
    }
    return growing.empty() ? kNoAxis : growing[0];
  }

  absl::StatusOr<std::vector<int>> AxesOf(const std::vector<ValueId>& ids,
                                          const std::vector<ValueId>& others) const {
    if (ids.size() != others.size()) return Differs("the number of inputs or outputs");
    std::vector<int> axes;
    for (size_t i = 0; i < ids.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(axes.emplace_back(),
                            AxisOf(graph_.value(ids[i]), other_.value(others[i])));
    }
    return axes;
  }

  absl::Status CompareNodes(const Node& node, const Node& other) {
    const std::string what = absl::StrCat("node '", node.name, "' (", node.op, ")");
    if (node.op != other.op || node.attributes != other.attributes ||
        node.inputs.size() != other.inputs.size() || node.outputs.size() != other.outputs.size()) {
      return Differs(what);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId a = node.inputs[i], b = other.inputs[i];
      if ((a == kNoValue) != (b == kNoValue)) return Differs(what);
      if (a == kNoValue) continue;
      // The types of the results say what these shapes and ends are.
      const bool is_shape =
          i == 1 ? node.op == "Reshape" || node.op == "Expand" : i == 2 && node.op == "Slice";
      if (graph_.IsConstant(a) != other_.IsConstant(b)) return Differs(what);
      if (graph_.IsConstant(a) ? !is_shape && !ConstantsFit(a, b)
                               : graph_.value(a).name != other_.value(b).name) {
        return Differs(absl::StrCat("input ", i, " of ", what));
      }
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId a = node.outputs[o], b = other.outputs[o];
      if ((a == kNoValue) != (b == kNoValue)) return Differs(what);
      if (a == kNoValue) continue;
      if (graph_.value(a).name != other_.value(b).name) return Differs(what);
      HONE_ASSIGN_OR_RETURN(std::vector<int> growing,
                            GrowingDimensions(graph_.value(a), other_.value(b)));
      if (!growing.empty()) axes_.growing[a] = std::move(growing);
    }
    return absl::OkStatus();
  }

  // Whether two constants are equal, or the other one has the first samples of a growing one.
  bool ConstantsFit(ValueId id, ValueId other_id) {
    const Value &a = graph_.value(id), &b = other_.value(other_id);
    if (a.type == b.type) {
      return a.constant->origin() == b.constant->origin() ||
             a.constant->bytes() == b.constant->bytes();
    }
    const absl::StatusOr<std::vector<int>> growing = GrowingDimensions(a, b);
    if (!growing.ok() || growing->size() > 2 || ir::IsPacked(a.type.dtype)) return false;
    const std::vector<int64_t>&shape = a.type.shape, &others = b.type.shape;
    const auto bytes_each = static_cast<size_t>(ir::BytesOf(a.type.dtype, 1));
    const absl::string_view elements = a.constant->bytes(), prefix = b.constant->bytes();
    const size_t row_bytes = others.back() * bytes_each;
    for (int64_t row = 0; row < b.type.elements(); row += others.back()) {
      int64_t at = 0;
      for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + PositionOf(others, row, d);
      if (elements.substr(at * bytes_each, row_bytes) !=
          prefix.substr(row * bytes_each, row_bytes)) {
        return false;
      }
    }
    axes_.growing[id] = *growing;
    return true;
  }

  const Graph& graph_;
  const int64_t samples_;
  const Graph& other_;
  const int64_t other_samples_;
  SampleAxes axes_;
};

// Element i of dimension `axis` belongs to sample i / block.
struct SampleDim {
  int axis = 0;
  int64_t block = 1;
};

// Two dimensions with an index for each sample: element (i, j) depends only on samples up to i or
// j, whichever is later.
struct SamplePair {
  // What is known of the elements with j > i: that they are too low to have a share in a softmax
  // over the columns, where element (i, i) is not hidden, or 0.
  enum class Hidden { kNothing, kLow, kZero };
  int row = 0, column = 0;
  Hidden hidden = Hidden::kNothing;
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
        state.depends = state.depends || states_[load.buffer].depends;
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
        if (!read.depends && same) return;
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
      : graph_(graph), samples_(samples), axes_(axes), states_(graph.values.size()) {
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

  // Does the same for a node of an attention over the samples. Returns false for other nodes.
  bool FollowAttention(int n) {
    const Node& node = graph_.nodes[n];
    for (const ValueId id : node.inputs) {
      if (id != kNoValue && states_[id].mixed_by >= 0) return false;
    }
    const std::optional<SampleState> state = node.op == "MatMul"    ? OfProduct(node)
                                             : node.op == "Softmax" ? OfSoftmax(node)
                                                                    : OfElementwise(node);
    if (!state.has_value()) return false;
    states_[node.outputs[0]] = *state;
    return true;
  }

  absl::Status CheckOutputs() const {
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const SampleState& state = states_[graph_.outputs[o]];
      const int axis = axes_.outputs[o];
      if (state.mixed_by >= 0) {
        const Node& node = graph_.nodes[state.mixed_by];
        return absl::FailedPreconditionError(
            absl::StrCat("node '", node.name, "' (", node.op, ") may mix the samples"));
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

  const std::vector<int64_t>& ShapeOf(ValueId id) const { return graph_.value(id).type.shape; }

  // An input or constant that grows in these dimensions.
  void Begin(ValueId id, const std::vector<int>& dimensions) {
    const std::vector<int64_t>& shape = ShapeOf(id);
    SampleState& state = states_[id];
    state.depends = true;
    if (dimensions.size() == 1) {
      state.sample = SampleDim{dimensions[0], shape[dimensions[0]] / samples_};
    } else if (shape[dimensions[0]] == samples_ && shape[dimensions[1]] == samples_) {
      state.pair = SamplePair{dimensions[0], dimensions[1]};
    }
  }

  // Whether each index of a dimension is a sample.
  bool HasSamples(ValueId id, int axis) const {
    const std::optional<SampleDim>& sample = states_[id].sample;
    return sample.has_value() && sample->axis == axis && sample->block == 1;
  }

  // Queries with keys, and shares with values.
  std::optional<SampleState> OfProduct(const Node& node) const {
    const ValueId a = node.inputs[0], b = node.inputs[1];
    const int a_rank = static_cast<int>(ShapeOf(a).size()),
              b_rank = static_cast<int>(ShapeOf(b).size()), rank = std::max(a_rank, b_rank);
    if (a_rank < 2 || b_rank < 2) return std::nullopt;
    if (HasSamples(a, a_rank - 2) && HasSamples(b, b_rank - 1)) {
      return SampleState{.depends = true, .pair = SamplePair{rank - 2, rank - 1}};
    }
    const std::optional<SamplePair>& shares = states_[a].pair;
    if (shares.has_value() && shares->hidden == Hidden::kZero && shares->row == a_rank - 2 &&
        shares->column == a_rank - 1 && HasSamples(b, b_rank - 2)) {
      return SampleState{.depends = true, .sample = SampleDim{rank - 2, 1}};
    }
    return std::nullopt;
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

  std::optional<SampleState> OfElementwise(const Node& node) const {
    static constexpr absl::string_view kOperators[] = {"Add", "Cast", "Div",  "Identity",
                                                       "Mul", "Sub",  "Tanh", "Where"};
    if (!absl::c_linear_search(kOperators, node.op)) return std::nullopt;
    const auto rank = static_cast<int>(ShapeOf(node.outputs[0]).size());
    const auto shift = [&](ValueId id) { return rank - static_cast<int>(ShapeOf(id).size()); };
    std::optional<SamplePair> pair;
    for (const ValueId id : node.inputs) {
      const std::optional<SamplePair>& read = states_[id].pair;
      if (!read.has_value()) continue;
      const SamplePair moved{read->row + shift(id), read->column + shift(id)};
      if (pair.has_value() && (pair->row != moved.row || pair->column != moved.column)) {
        return std::nullopt;
      }
      pair = moved;
    }
    if (!pair.has_value()) return std::nullopt;
    for (const ValueId id : node.inputs) {
      if (!states_[id].depends || states_[id].pair.has_value()) continue;
      // It may be a mask, which may hide all that a row sees.
      if (!graph_.IsConstant(id)) return std::nullopt;
      if (!HasSamples(id, pair->row - shift(id)) && !HasSamples(id, pair->column - shift(id))) {
        return std::nullopt;
      }
    }
    pair->hidden = HiddenBy(node);
    return SampleState{.depends = true, .pair = pair};
  }

  Hidden HiddenBy(const Node& node) const {
    const auto input = [&](size_t i) { return node.inputs[i]; };
    if (node.op == "Cast" || node.op == "Identity") return states_[input(0)].pair->hidden;
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

  // Whether all elements of a constant are too low to have a share in a softmax.
  bool IsLow(ValueId id) const {
    const Value& value = graph_.value(id);
    if (!value.constant.has_value() || states_[id].depends) return false;
    const char* const elements = value.constant->bytes().data();
    for (int64_t at = 0; at < value.type.elements(); ++at) {
      if (!(ir::ReadElement(value.type.dtype, elements, at).real() <= kHides)) return false;
    }
    return true;
  }

  const Graph& graph_;
  const int64_t samples_;
  const SampleAxes& axes_;
  std::vector<SampleState> states_;
};

}  // namespace

absl::StatusOr<SampleAxes> CompareSamples(const Graph& graph, int64_t samples, const Graph& other,
                                          int64_t other_samples) {
  return SampleComparison(graph, samples, other, other_samples).Run();
}

bool DifferOnlyInExtents(const ir::Workload& a, const ir::Workload& b) {
  if (a.tensors.size() != b.tensors.size() || a.stages.size() != b.stages.size() ||
      a.pool.size() != b.pool.size() || a.atoms.size() != b.atoms.size()) {
    return false;
  }
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    const ir::Tensor &x = a.tensors[t], &y = b.tensors[t];
    if (x.dtype != y.dtype || x.shape.size() != y.shape.size() || x.input != y.input ||
        x.output != y.output || x.bound != y.bound || x.stage != y.stage) {
      return false;
    }
  }
  const auto same_axes = [](const std::vector<ir::Axis>& x, const std::vector<ir::Axis>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const ir::Axis& p, const ir::Axis& q) { return p.var == q.var; });
  };
  for (size_t s = 0; s < a.stages.size(); ++s) {
    const ir::Stage &x = a.stages[s], &y = b.stages[s];
    if (x.tensors != y.tensors || x.reducer != y.reducer || x.values != y.values ||
        x.guards.size() != y.guards.size() || !same_axes(x.spatial, y.spatial) ||
        !same_axes(x.reduce, y.reduce)) {
      return false;
    }
    for (size_t g = 0; g < x.guards.size(); ++g) {
      if (!(x.guards[g].index == y.guards[g].index)) return false;
    }
  }
  for (ir::AtomId id = 0; id < a.atoms.size(); ++id) {
    const ir::Atom &x = a.atoms[id], &y = b.atoms[id];
    if (x.kind != y.kind || x.divisor != y.divisor || !(x.argument == y.argument)) return false;
  }
  for (ir::ExprId id = 0; id < a.pool.size(); ++id) {
    const ir::Expr &x = a.pool[id], &y = b.pool[id];
    if (x.op != y.op || x.dtype != y.dtype || x.gathered != y.gathered || x.a != y.a ||
        x.b != y.b || x.c != y.c || x.buffer != y.buffer || x.indices != y.indices ||
        !(x.value == y.value)) {
      return false;
    }
    if (x.indices >= 0 && a.pool.IndicesOf(x) != b.pool.IndicesOf(y)) return false;
  }
  return true;
}

absl::Status CheckSamplesAreIndependent(const Graph& graph, int64_t samples,
                                        const SampleAxes& axes) {
  SampleFlow flow(graph, samples, axes);
  const std::vector<std::vector<int>> readers = graph.Consumers();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto node = static_cast<int>(n);
    const bool is_needed = absl::c_any_of(graph.nodes[n].outputs, [&](ValueId id) {
      return id != kNoValue && (!readers[id].empty() || absl::c_linear_search(graph.outputs, id));
    });
    if (!is_needed || flow.FollowAttention(node)) continue;
    HONE_ASSIGN_OR_RETURN(const Group group, MakeGroup(graph, {node}, "node"));
    flow.Follow(node, group.workload, group.inputs, group.outputs);
  }
  return flow.CheckOutputs();
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
