#include "client/network/graph/samples.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/group.h"
#include "common/base/status_macros.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"

namespace hone::graph {
namespace {

// If a constant has the same elements for each sample, in its first dimension with more than one
// index, returns those of one sample.
std::optional<absl::string_view> RepeatedPart(const Value& value, int64_t samples) {
  const std::vector<int64_t>& shape = value.type.shape;
  const auto first = std::find_if(shape.begin(), shape.end(), [](int64_t e) { return e != 1; });
  if (first == shape.end() || *first % samples != 0) return std::nullopt;
  const absl::string_view bytes = value.constant->bytes();
  if (bytes.size() % samples != 0) return std::nullopt;
  const absl::string_view part = bytes.substr(0, bytes.size() / samples);
  for (size_t at = 0; at < bytes.size(); at += part.size()) {
    if (part.empty() || bytes.substr(at, part.size()) != part) return std::nullopt;
  }
  return part;
}

class SampleComparison {
 public:
  SampleComparison(const Graph& graph, int64_t samples, const Graph& other, int64_t other_samples)
      : graph_(graph), samples_(samples), other_(other), other_samples_(other_samples) {}

  absl::StatusOr<SampleAxes> Run() {
    if (graph_.nodes.size() != other_.nodes.size()) {
      return Differs("the number of nodes");
    }
    SampleAxes axes;
    HONE_ASSIGN_OR_RETURN(axes.inputs, AxesOf(graph_.inputs, other_.inputs));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      HONE_RETURN_IF_ERROR(CompareNodes(graph_.nodes[n], other_.nodes[n]));
    }
    HONE_ASSIGN_OR_RETURN(axes.outputs, AxesOf(graph_.outputs, other_.outputs));
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const ValueId a = graph_.outputs[o], b = other_.outputs[o];
      const bool same = graph_.IsConstant(a) == other_.IsConstant(b) &&
                        (graph_.IsConstant(a) ? AreEqual(graph_.value(a), other_.value(b))
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

  absl::Status CompareNodes(const Node& node, const Node& other) const {
    const std::string what = absl::StrCat("node '", node.name, "' (", node.op, ")");
    if (node.op != other.op || node.attributes != other.attributes ||
        node.inputs.size() != other.inputs.size() || node.outputs.size() != other.outputs.size()) {
      return Differs(what);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId a = node.inputs[i], b = other.inputs[i];
      if ((a == kNoValue) != (b == kNoValue)) return Differs(what);
      if (a == kNoValue) continue;
      // The types of the results say what these shapes are.
      const bool is_shape = i == 1 && (node.op == "Reshape" || node.op == "Expand");
      if (graph_.IsConstant(a) != other_.IsConstant(b)) return Differs(what);
      if (graph_.IsConstant(a) ? !is_shape && !AreEqual(graph_.value(a), other_.value(b))
                               : graph_.value(a).name != other_.value(b).name) {
        return Differs(absl::StrCat("input ", i, " of ", what));
      }
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId a = node.outputs[o], b = other.outputs[o];
      if ((a == kNoValue) != (b == kNoValue)) return Differs(what);
      if (a == kNoValue) continue;
      if (graph_.value(a).name != other_.value(b).name) return Differs(what);
      HONE_RETURN_IF_ERROR(GrowingDimensions(graph_.value(a), other_.value(b)).status());
    }
    return absl::OkStatus();
  }

  bool AreEqual(const Value& a, const Value& b) const {
    if (a.type == b.type) {
      return a.constant->origin() == b.constant->origin() ||
             a.constant->bytes() == b.constant->bytes();
    }
    if (!AxisOf(a, b).ok()) return false;
    const auto part = RepeatedPart(a, samples_), other = RepeatedPart(b, other_samples_);
    return part.has_value() && other.has_value() && *part == *other;
  }

  const Graph& graph_;
  const int64_t samples_;
  const Graph& other_;
  const int64_t other_samples_;
};

// Element i of dimension `axis` belongs to sample i / block.
struct SampleDim {
  int axis = 0;
  int64_t block = 1;
};

// What is known of a tensor.
struct SampleState {
  bool depends = false;             // whether its elements depend on those of a sample
  std::optional<SampleDim> sample;  // set if each element depends on this sample alone
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

absl::Status CheckSamplesAreIndependent(const Graph& graph, const Partition& partition,
                                        int64_t samples, const SampleAxes& axes) {
  std::vector<SampleState> states(graph.values.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const int axis = axes.inputs[i];
    if (axis == kNoAxis) continue;
    const int64_t extent = graph.value(graph.inputs[i]).type.shape[axis];
    states[graph.inputs[i]] = {.depends = true, .sample = SampleDim{axis, extent / samples}};
  }
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    // Only constants with the extent of a batch can repeat for each sample.
    if (!value.constant.has_value() || value.constant->is_computed()) continue;
    if (!RepeatedPart(value, samples).has_value()) continue;
    const auto& shape = value.type.shape;
    const auto first = std::find_if(shape.begin(), shape.end(), [](int64_t e) { return e != 1; });
    states[v].sample = SampleDim{static_cast<int>(first - shape.begin()), *first / samples};
  }
  for (const Step& step : partition.steps) {
    std::optional<Group> alias;
    if (step.kind == Step::Kind::kAlias) {
      HONE_ASSIGN_OR_RETURN(alias, MakeGroup(graph, step.nodes, "alias"));
    }
    const std::vector<ValueId>& inputs = alias.has_value() ? alias->inputs : step.inputs;
    const std::vector<ValueId>& outputs = alias.has_value() ? alias->outputs : step.outputs;
    const ir::Workload& workload =
        alias.has_value() ? alias->workload : partition.tasks[step.task].workload;
    std::vector<SampleState> read, made;
    for (const ValueId id : inputs) read.push_back(states[id]);
    if (!SampleTracker(workload, samples).Run(read, made)) {
      const Node& node = graph.nodes[step.nodes[0]];
      return absl::FailedPreconditionError(
          absl::StrCat("step '", node.name, "' (", node.op, ") may mix the samples"));
    }
    for (size_t o = 0; o < outputs.size(); ++o) states[outputs[o]] = made[o];
  }
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const SampleState& state = states[graph.outputs[o]];
    const int axis = axes.outputs[o];
    const bool kept =
        axis == kNoAxis ? !state.depends : state.sample.has_value() && state.sample->axis == axis;
    if (!kept) {
      return absl::FailedPreconditionError(absl::StrCat(
          "output '", graph.value(graph.outputs[o]).name, "' does not have one part per sample"));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
