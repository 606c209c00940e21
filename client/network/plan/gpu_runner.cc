#include "client/network/plan/gpu_runner.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/network/plan/make_plan.h"
#include "client/network/runtime/plan_reader.h"
#include "common/base/status_macros.h"
#include "common/target/gpu_launch.h"

namespace hone::network {
namespace {

// Adds to an error how much memory a network needs.
absl::Status WithMemory(const absl::Status& status, const GpuPlan& plan) {
  if (!absl::IsResourceExhausted(status)) return status;
  int64_t constants = 0, others = 0;
  for (const GpuPlan::Buffer& buffer : plan.buffers) {
    (buffer.constant == graph::kNoValue ? others : constants) += buffer.bytes;
  }
  const auto mebibytes = [](int64_t bytes) {
    return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  };
  return absl::ResourceExhaustedError(
      absl::StrCat("the device has too little memory for this network, which needs ",
                   mebibytes(constants + others), ", of which constants ", mebibytes(constants),
                   ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> GpuRunner::Create(
    std::unique_ptr<target::GpuContext> context, const graph::Graph& graph,
    const graph::Partition& partition, absl::Span<const NetworkKernel> kernels) {
  if (partition.alignment % context->part_alignment != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the device accepts parts of buffers at multiples of ", context->part_alignment,
        " bytes, and the network has tensors at multiples of ", partition.alignment));
  }
  HONE_ASSIGN_OR_RETURN(const PlannedNetwork planned, MakePlan(graph, partition, kernels));
  auto runner = std::unique_ptr<GpuRunner>(
      new GpuRunner(std::move(context), graph, MakeGpuPlan(planned, graph, kernels)));
  HONE_RETURN_IF_ERROR(runner->LoadPrograms(kernels, planned.plan));
  HONE_RETURN_IF_ERROR(WithMemory(runner->MakeBuffers(graph), runner->plan_));
  HONE_RETURN_IF_ERROR(WithMemory(runner->Pack(), runner->plan_));
  for (const PlanStep& step : planned.plan.steps) {
    const bool copies = step.kernel == PlanStep::kCopy;
    runner->steps_.push_back({step.name, copies ? "copy" : planned.plan.kernels[step.kernel].name});
  }
  runner->network_ = planned.plan;
  runner->sequence_ = runner->context_->MakeSequence();
  for (const std::vector<GpuCommand>& step : runner->plan_.steps) {
    runner->sequence_->BeginStep();
    for (const GpuCommand& command : step) {
      HONE_RETURN_IF_ERROR(runner->Add(command, *runner->sequence_));
    }
  }
  return runner;
}

absl::Status GpuRunner::LoadPrograms(absl::Span<const NetworkKernel> kernels, const Plan& plan) {
  for (size_t t = 0; t < kernels.size(); ++t) {
    const target::GpuModule& module = *kernels[t].module;
    for (const target::GpuLaunch& launch : module.launches) {
      HONE_RETURN_IF_ERROR(target::CheckLaunch(launch, *context_));
    }
    HONE_ASSIGN_OR_RETURN(
        programs_.emplace_back(),
        context_->Load(module, absl::StrCat("the kernel of ", plan.kernels[t].name)));
  }
  return absl::OkStatus();
}

absl::Status GpuRunner::MakeBuffers(const graph::Graph& graph) {
  for (const GpuPlan::Buffer& buffer : plan_.buffers) {
    std::unique_ptr<target::GpuMemory>& memory = buffers_.emplace_back();
    if (buffer.bytes == 0) continue;
    HONE_ASSIGN_OR_RETURN(memory, context_->Allocate(buffer.bytes, 0, buffer.bytes));
    if (buffer.constant == graph::kNoValue) continue;
    const absl::string_view content = graph.value(buffer.constant).constant->bytes();
    HONE_RETURN_IF_ERROR(memory->Write(0, buffer.bytes, content.data()));
  }
  for (const GpuPart& part : plan_.parts) {
    std::unique_ptr<target::GpuMemory>& memory = parts_.emplace_back();
    if (part.bytes == plan_.buffers[part.buffer].bytes) continue;
    HONE_ASSIGN_OR_RETURN(memory, buffers_[part.buffer]->Part(part.offset, part.bytes));
  }
  return absl::OkStatus();
}

target::GpuMemory* GpuRunner::MemoryOf(int part) const {
  if (part == GpuCommand::kNull) return nullptr;
  return parts_[part] != nullptr ? parts_[part].get() : buffers_[plan_.parts[part].buffer].get();
}

absl::Status GpuRunner::Add(const GpuCommand& command, target::GpuSequence& sequence) {
  if (command.kernel == GpuCommand::kCopy) {
    return sequence.AddCopy(*MemoryOf(command.parts[0]), *MemoryOf(command.parts[1]),
                            plan_.parts[command.parts[0]].bytes);
  }
  std::vector<target::GpuArgument> parameters;
  for (const int part : command.parts) {
    parameters.emplace_back(static_cast<const target::GpuMemory*>(MemoryOf(part)));
  }
  return sequence.AddLaunch(*programs_[command.kernel], static_cast<size_t>(command.launch),
                            parameters);
}

absl::Status GpuRunner::Pack() {
  if (plan_.packing.empty()) return absl::OkStatus();
  std::unique_ptr<target::GpuSequence> packing = context_->MakeSequence();
  packing->BeginStep();
  for (const GpuCommand& command : plan_.packing) HONE_RETURN_IF_ERROR(Add(command, *packing));
  HONE_RETURN_IF_ERROR(packing->Run({}, {}, nullptr));
  packing = nullptr;  // before its memory
  for (size_t b = 0; b < buffers_.size(); ++b) {
    if (plan_.buffers[b].only_for_packing) buffers_[b] = nullptr;
  }
  return absl::OkStatus();
}

// Indices that the network computes stay on the device, where kernels clamp them.
absl::Status GpuRunner::CheckIndices(absl::Span<const void* const> inputs) const {
  for (const PlanStep& step : network_.steps) {
    for (const PlanCheck& check : step.checks) {
      const PlanTensor& tensor = network_.tensors[check.tensor];
      if (tensor.place != PlaceKind::kInput) continue;
      const HonePlanCheck encoded = network_.ForRuntime(check);
      const char* const elements = static_cast<const char*>(inputs[tensor.number]) + tensor.offset;
      const int64_t place = hone_plan_wrong_index(&encoded, elements, tensor.type.bytes());
      if (place < 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("step '", step.name, "': element ", place, " of '", tensor.name, "' is ",
                       hone_plan_index(&encoded, elements, place), ", but indices must be from ",
                       -check.extent, " to ", check.extent - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status GpuRunner::RunOn(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                              std::vector<StepTime>* times) {
  HONE_RETURN_IF_ERROR(CheckIndices(inputs));
  std::vector<target::GpuUpload> uploads;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int part = plan_.inputs[i];
    if (plan_.parts[part].bytes == 0) continue;
    uploads.push_back({MemoryOf(part), plan_.parts[part].bytes, inputs[i]});
  }
  std::vector<target::GpuDownload> downloads;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const int part = plan_.outputs[o];
    if (plan_.parts[part].bytes == 0) continue;
    downloads.push_back({MemoryOf(part), plan_.parts[part].bytes, outputs[o]});
  }
  std::vector<double> ns;
  const absl::Status ran = sequence_->Run(uploads, downloads, times == nullptr ? nullptr : &ns);
  if (!ran.ok()) {
    return absl::Status(
        ran.code(), absl::StrCat("the device failed while it ran the network: ", ran.message()));
  }
  if (times == nullptr) return absl::OkStatus();
  *times = steps_;
  for (size_t s = 0; s < ns.size(); ++s) (*times)[s].ns = static_cast<int64_t>(ns[s]);
  return absl::OkStatus();
}

}  // namespace hone::network
