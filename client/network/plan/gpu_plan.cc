#include "client/network/plan/gpu_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace hone::network {
namespace {

class GpuPlanner {
 public:
  GpuPlanner(const PlannedNetwork& planned, const graph::Graph& graph,
             absl::Span<const NetworkKernel> kernels)
      : plan_(planned.plan), pieces_(planned.pieces), graph_(graph), kernels_(kernels) {}

  GpuPlan Run() {
    for (const int tensor : plan_.inputs) inputs_.push_back(AddBuffer(BytesOf(tensor)));
    for (const int tensor : plan_.outputs) outputs_.push_back(AddBuffer(BytesOf(tensor)));
    arena_ = AddBuffer(plan_.arena_bytes);
    int64_t workspace = 0;
    for (const NetworkKernel& kernel : kernels_) {
      workspace = std::max(workspace, kernel.module->workspace_bytes);
    }
    if (workspace > 0) workspace_ = PartOf({AddBuffer(workspace), 0, workspace});
    for (const WeightsPiece& piece : pieces_) AddPiece(piece);
    for (const PlanStep& step : plan_.steps) AddStep(step);
    for (const int tensor : plan_.inputs) made_.inputs.push_back(PartOfTensor(tensor));
    for (const int tensor : plan_.outputs) made_.outputs.push_back(PartOfTensor(tensor));
    return std::move(made_);
  }

 private:
  int64_t BytesOf(int tensor) const { return plan_.tensors[tensor].type.bytes(); }

  int AddBuffer(int64_t bytes, graph::ValueId constant = graph::kNoValue) {
    made_.buffers.push_back({.bytes = bytes, .constant = constant});
    return static_cast<int>(made_.buffers.size()) - 1;
  }

  int PartOf(const GpuPart& part) {
    const auto [entry, is_new] = parts_.emplace(std::tuple(part.buffer, part.offset, part.bytes),
                                                static_cast<int>(made_.parts.size()));
    if (is_new) made_.parts.push_back(part);
    return entry->second;
  }
  int WholeOf(int buffer) { return PartOf({buffer, 0, made_.buffers[buffer].bytes}); }

  // The part of a tensor of the plan; kNull if no kernel reads it.
  int PartOfTensor(int number) {
    const PlanTensor& tensor = plan_.tensors[number];
    GpuPart part{.offset = tensor.offset, .bytes = tensor.type.bytes()};
    // Devices refuse parts without bytes. No kernel reads an empty tensor.
    if (part.bytes == 0) return WholeOf(AddBuffer(0));
    switch (tensor.place) {
      case PlaceKind::kInput:
        part.buffer = inputs_[tensor.number];
        break;
      case PlaceKind::kOutput:
        part.buffer = outputs_[tensor.number];
        break;
      case PlaceKind::kArena:
        part.buffer = arena_;
        break;
      case PlaceKind::kWeights: {
        const auto piece = std::prev(weights_.upper_bound(tensor.offset));
        part.buffer = piece->second;
        part.offset -= piece->first;
        break;
      }
      case PlaceKind::kAbsent:
        return GpuCommand::kNull;
    }
    return PartOf(part);
  }

  void AddPiece(const WeightsPiece& piece) {
    if (piece.constant != graph::kNoValue) {
      const int64_t bytes = graph_.value(piece.constant).type.bytes();
      if (bytes > 0) weights_[piece.offset] = AddBuffer(bytes, piece.constant);
      return;
    }
    const target::GpuModule& module = *kernels_[piece.task].module;
    const int packed = AddBuffer(module.packed_bytes);
    weights_[piece.offset] = packed;
    std::vector<int> parameters(module.arguments, GpuCommand::kNull);
    for (size_t i = 0; i < piece.inputs.size(); ++i) {
      if (piece.inputs[i] != graph::kNoValue) parameters[i] = UnpackedOf(piece.inputs[i]);
    }
    AddLaunches(piece.task, /*prepack=*/true, std::move(parameters), packed, made_.packing);
  }

  // A constant that is packed.
  int UnpackedOf(graph::ValueId constant) {
    const auto [entry, is_new] = unpacked_.emplace(constant, 0);
    if (is_new) {
      entry->second = AddBuffer(graph_.value(constant).type.bytes(), constant);
      made_.buffers.back().only_for_packing = true;
    }
    return WholeOf(entry->second);
  }

  // `parameters`: the inputs and outputs. `packed`: the buffer of the packed constants, or kNull.
  void AddLaunches(int task, bool prepack, std::vector<int> parameters, int packed,
                   std::vector<GpuCommand>& commands) {
    parameters.push_back(packed == GpuCommand::kNull ? packed : WholeOf(packed));
    parameters.push_back(workspace_);
    const std::vector<target::GpuLaunch>& launches = kernels_[task].module->launches;
    for (int l = 0; l < static_cast<int>(launches.size()); ++l) {
      if (launches[l].prepack == prepack) commands.push_back({task, l, parameters});
    }
  }

  void AddStep(const PlanStep& step) {
    std::vector<GpuCommand>& commands = made_.steps.emplace_back();
    if (step.kernel == PlanStep::kCopy && BytesOf(step.tensors[0]) == 0) return;
    std::vector<int> parts;
    for (const int tensor : step.tensors) parts.push_back(PartOfTensor(tensor));
    if (step.kernel == PlanStep::kCopy) {
      commands.push_back({.parts = std::move(parts)});
      return;
    }
    const bool packs = plan_.kernels[step.kernel].packed_bytes > 0;
    AddLaunches(step.kernel, /*prepack=*/false, std::move(parts),
                packs ? weights_.at(step.packed_offset) : GpuCommand::kNull, commands);
  }

  const Plan& plan_;
  const std::vector<WeightsPiece>& pieces_;
  const graph::Graph& graph_;
  const absl::Span<const NetworkKernel> kernels_;
  GpuPlan made_;
  std::vector<int> inputs_, outputs_;  // buffers
  int arena_ = 0;                      // a buffer
  int workspace_ = GpuCommand::kNull;  // a part
  std::map<int64_t, int> weights_;     // buffers, by the offsets of the pieces
  std::map<graph::ValueId, int> unpacked_;
  std::map<std::tuple<int, int64_t, int64_t>, int> parts_;
};

}  // namespace

GpuPlan MakeGpuPlan(const PlannedNetwork& planned, const graph::Graph& graph,
                    absl::Span<const NetworkKernel> kernels) {
  return GpuPlanner(planned, graph, kernels).Run();
}

}  // namespace hone::network
