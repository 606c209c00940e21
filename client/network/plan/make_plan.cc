#include "client/network/plan/make_plan.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/graph/memory_plan.h"
#include "client/network/graph/op/indices.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_memory.h"

namespace hone::network {
namespace {

using graph::ValueId;

// The position of a value in a list; -1 if it is not there.
int IndexOf(const std::vector<ValueId>& list, ValueId id) {
  const auto found = absl::c_find(list, id);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

class Planner {
 public:
  Planner(const graph::Graph& graph, const graph::Partition& partition,
          absl::Span<const NetworkKernel> kernels)
      : graph_(graph),
        partition_(partition),
        kernels_(kernels),
        memory_(graph::PlanMemory(graph, partition)) {}

  absl::StatusOr<PlannedNetwork> Run() {
    if (kernels_.size() != partition_.tasks.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the network has ", partition_.tasks.size(),
                                                     " tasks, but ", kernels_.size(), " kernels"));
    }
    for (size_t t = 0; t < kernels_.size(); ++t) HONE_RETURN_IF_ERROR(AddKernel(t));
    FindPlainConstants();
    plan().arena_bytes = memory_.arena_bytes;
    for (const ValueId id : graph_.inputs) plan().inputs.push_back(TensorOf(id));
    for (const graph::Step& step : partition_.steps) {
      if (step.kind == graph::Step::Kind::kKernel) HONE_RETURN_IF_ERROR(AddStep(step));
    }
    for (size_t o = 0; o < graph_.outputs.size(); ++o) AddOutput(static_cast<int>(o));
    plan().weights_bytes = weights_bytes_;
    return std::move(planned_);
  }

 private:
  Plan& plan() { return planned_.plan; }

  absl::Status AddKernel(size_t task) {
    const ir::Workload& workload = partition_.tasks[task].workload;
    if (kernels_[task].reads.size() != workload.Inputs().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the kernel of ", workload.name, " has ", kernels_[task].reads.size(),
                       " inputs instead of ", workload.Inputs().size()));
    }
    plan().kernels.push_back(
        {.name = workload.name,
         .buffers = static_cast<int>(workload.Inputs().size() + workload.Outputs().size()),
         .packed_bytes = kernels_[task].packed_bytes});
    return absl::OkStatus();
  }

  void FindPlainConstants() {
    const auto add = [&](ValueId id) {
      const ValueId outside = memory_.places[id].outside;
      if (outside != graph::kNoValue && graph_.IsConstant(outside)) plain_.insert(outside);
    };
    for (const graph::Step& step : partition_.steps) {
      if (step.kind != graph::Step::Kind::kKernel) continue;
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        if (kernels_[step.task].reads[i] || !graph_.IsConstant(step.inputs[i])) {
          add(step.inputs[i]);
        }
      }
    }
    for (const ValueId id : graph_.outputs) add(id);
  }

  // The tensor of a value, where the memory plan has it.
  int TensorOf(ValueId id) {
    const auto [entry, is_new] = tensors_.emplace(id, static_cast<int>(plan().tensors.size()));
    if (!is_new) return entry->second;
    const graph::Place& place = memory_.places[id];
    PlanTensor tensor{
        .name = graph_.value(id).name, .type = graph_.value(id).type, .offset = place.offset};
    if (place.kind == graph::Place::Kind::kOutside) PlaceOutside(place, tensor);
    plan().tensors.push_back(std::move(tensor));
    return entry->second;
  }

  void PlaceOutside(const graph::Place& place, PlanTensor& tensor) {
    if (graph_.IsConstant(place.outside)) {
      const bool absent = !plain_.contains(place.outside);
      tensor.place = absent ? PlaceKind::kAbsent : PlaceKind::kWeights;
      tensor.offset = absent ? 0 : place.offset + WeightsOf(place.outside);
    } else if (const int input = IndexOf(graph_.inputs, place.outside); input >= 0) {
      tensor.place = PlaceKind::kInput;
      tensor.number = input;
    } else {
      tensor.place = PlaceKind::kOutput;
      tensor.number = IndexOf(graph_.outputs, place.outside);
    }
  }

  // The offset of a constant in the weights file.
  int64_t WeightsOf(ValueId constant) {
    const auto [entry, is_new] = constants_.emplace(constant, weights_bytes_);
    if (is_new) {
      planned_.pieces.push_back({.offset = weights_bytes_, .constant = constant});
      weights_bytes_ += target::AlignedBytes(graph_.value(constant).type.bytes());
    }
    return entry->second;
  }

  // The offset of a step's packed constants in the weights file. Steps share them if their kernel
  // and their constants are the same.
  int64_t PackedOf(const graph::Step& step) {
    std::pair<int, std::vector<ValueId>> key(step.task, step.inputs);
    for (ValueId& id : key.second) {
      if (!graph_.IsConstant(id)) id = graph::kNoValue;
    }
    const auto [entry, is_new] = packed_.emplace(key, weights_bytes_);
    if (is_new) {
      planned_.pieces.push_back(
          {.offset = weights_bytes_, .task = step.task, .inputs = std::move(key.second)});
      weights_bytes_ += target::AlignedBytes(plan().kernels[step.task].packed_bytes);
    }
    return entry->second;
  }

  absl::Status AddStep(const graph::Step& step) {
    const ir::Workload& workload = partition_.tasks[step.task].workload;
    const std::vector<ir::BufferId> inputs = workload.Inputs();
    const std::string name = absl::StrJoin(step.nodes, "+", [&](std::string* out, int node) {
      absl::StrAppend(out, graph_.nodes[node].name);
    });
    PlanStep planned{.name = name, .kernel = step.task};
    for (const std::vector<ValueId>* values : {&step.inputs, &step.outputs}) {
      for (const ValueId id : *values) planned.tensors.push_back(TensorOf(id));
    }
    if (static_cast<int>(planned.tensors.size()) != plan().kernels[step.task].buffers) {
      return absl::InvalidArgumentError(
          absl::StrCat("step '", name, "' and its workload have different numbers of tensors"));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (workload.tensors[inputs[i]].constant && !graph_.IsConstant(step.inputs[i])) {
        return absl::InvalidArgumentError(absl::StrCat(
            "step '", name, "': input ", i, " must be constant, but the network computes it"));
      }
    }
    if (plan().kernels[step.task].packed_bytes > 0) planned.packed_offset = PackedOf(step);
    AddChecks(step, planned);
    plan().steps.push_back(std::move(planned));
    return absl::OkStatus();
  }

  // Adds the checks of indices that the step reads. Those that its own kernel computes are clamped.
  void AddChecks(const graph::Step& step, PlanStep& planned) {
    for (const int node : step.nodes) {
      for (const graph::IndexRange& range : graph::IndexRanges(graph_, graph_.nodes[node])) {
        if (IndexOf(step.inputs, range.indices) < 0) continue;
        planned.checks.push_back(
            {TensorOf(range.indices), range.extent, range.column, range.columns});
      }
    }
  }

  void AddOutput(int number) {
    const ValueId id = graph_.outputs[number];
    const int tensor = TensorOf(id);
    const PlanTensor& made = plan().tensors[tensor];
    if (made.place == PlaceKind::kOutput && made.number == number && made.offset == 0) {
      plan().outputs.push_back(tensor);
      return;
    }
    PlanTensor own{.name = made.name, .type = made.type, .place = PlaceKind::kOutput};
    own.number = number;
    const int copy = static_cast<int>(plan().tensors.size());
    plan().steps.push_back({.name = own.name, .tensors = {tensor, copy}});
    plan().tensors.push_back(std::move(own));
    plan().outputs.push_back(copy);
  }

  const graph::Graph& graph_;
  const graph::Partition& partition_;
  const absl::Span<const NetworkKernel> kernels_;
  const graph::MemoryPlan memory_;
  PlannedNetwork planned_;
  std::set<ValueId> plain_;               // constants that a step or an output reads unpacked
  std::map<ValueId, int> tensors_;        // in the plan
  std::map<ValueId, int64_t> constants_;  // offsets in the weights file
  std::map<std::pair<int, std::vector<ValueId>>, int64_t> packed_;
  int64_t weights_bytes_ = sizeof(HoneWeightsHeader);
};

}  // namespace

absl::StatusOr<PlannedNetwork> MakePlan(const graph::Graph& graph,
                                        const graph::Partition& partition,
                                        absl::Span<const NetworkKernel> kernels) {
  return Planner(graph, partition, kernels).Run();
}

}  // namespace hone::network
