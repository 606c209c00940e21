#include "client/network/graph/samples.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/network/graph/group.h"
#include "client/network/graph/masked_sums.h"
#include "client/network/graph/sample_attention.h"
#include "client/network/graph/sample_state.h"
#include "client/network/graph/sample_tracker.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// Follows the samples through a graph.
class SampleFlow {
 public:
  SampleFlow(const Graph& graph, int64_t samples, const SampleAxes& axes)
      : graph_(graph), axes_(axes), states_(graph, samples, axes) {}

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
    if (mixed.mixed_by < 0 && !SampleTracker(workload, states_.samples()).Run(read, made)) {
      mixed.mixed_by = node;
    }
    for (size_t o = 0; o < outputs.size(); ++o) {
      SampleState& state = states_[outputs[o]];
      state = mixed.mixed_by < 0 ? made[o] : mixed;
      const std::vector<int>& growing = states_.GrowingOf(outputs[o]);
      if (state.mixed_by >= 0 || growing.empty()) continue;
      // Nodes that read this output must keep the samples apart, even if it is computed from
      // constants. If a second dimension grows, padding also makes each sample longer.
      state.depends = true;
      if (!state.sample.has_value() || growing != std::vector{state.sample->axis}) {
        state.mixed_by = node;
      }
    }
  }

  // Sets the states of the outputs of a node that is followed by itself.
  absl::Status FollowNode(int n) {
    const Node& node = graph_.nodes[n];
    InputMasks& masks = states_.masks();
    const auto is_mask = [&](ValueId id) { return masks.IsMask(id); };
    const bool reads_mask = absl::c_any_of(node.inputs, is_mask);
    if (!reads_mask && FollowMasked(n)) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const Group group, MakeGroup(graph_, {n}, "node"));
    if (reads_mask && !masks.Follow(n, group)) {
      if (FollowMasked(n)) return absl::OkStatus();
      for (const ValueId id : node.inputs) {
        if (masks.IsMask(id)) masks.ReadBy(n, masks.InputOf(id));
      }
    }
    Follow(n, group.workload, group.inputs, group.outputs);
    const PaddingNumbers numbers = states_.NumbersOf(node);
    for (const ValueId id : group.outputs) states_[id].numbers = numbers;
    sums_.FollowOther(n);
    return absl::OkStatus();
  }

  // The inputs that must hide the padding.
  absl::StatusOr<std::vector<InputMask>> Masks() {
    for (const ValueId id : graph_.outputs) sums_.Read(id);
    return states_.masks().Chosen();
  }

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
  // Follows a node of an attention, or a sum of what is masked. Returns false for other nodes.
  bool FollowMasked(int n) {
    if (!attention_.Follow(n)) return sums_.Follow(n);
    for (const ValueId id : graph_.nodes[n].inputs) {
      if (id != kNoValue) sums_.Read(id);
    }
    return true;
  }

  // Says that a mask of scores was not accepted; "" if the node has none.
  std::string WhyNotMasked(const Node& node) const {
    const bool has_scores = absl::c_any_of(
        node.inputs, [&](ValueId id) { return id != kNoValue && states_[id].pair.has_value(); });
    const auto mask =
        absl::c_find_if(node.inputs, [&](ValueId id) { return states_.masks().IsMask(id); });
    if (!has_scores || mask == node.inputs.end()) return "";
    return absl::StrCat("; it is not proven that its mask, which is computed from input '",
                        graph_.value(graph_.inputs[states_.masks().InputOf(*mask)]).name,
                        "', hides the padding");
  }

  const Graph& graph_;
  const SampleAxes& axes_;
  SampleStates states_;
  SampleAttention attention_{states_};
  MaskedSums sums_{states_};
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
