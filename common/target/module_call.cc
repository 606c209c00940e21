#include "common/target/module_call.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/target/gpu_context.h"

namespace hone::target {
namespace {

// The parameters of all kernels, in order, and the memory to which they point.
struct Buffers {
  // Adds a buffer; null if `bytes` is 0.
  absl::StatusOr<GpuMemory*> Add(GpuContext& context, int64_t bytes) {
    if (bytes > 0) {
      HONE_ASSIGN_OR_RETURN(owned.emplace_back(), context.Allocate(bytes, 0, bytes));
    } else {
      owned.emplace_back();
    }
    parameters.emplace_back(owned.back().get());
    return owned.back().get();
  }

  std::vector<std::unique_ptr<GpuMemory>> owned;
  std::vector<GpuArgument> parameters;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> CallModule(GpuContext& context, const GpuModule& module,
                                                    absl::Span<const absl::string_view> inputs,
                                                    absl::Span<const int64_t> output_bytes) {
  if (inputs.size() + output_bytes.size() != static_cast<size_t>(module.arguments)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernels take ", Counted(module.arguments, "buffer"), ", not ",
                     Counted(static_cast<int64_t>(inputs.size()), "input"), " and ",
                     Counted(static_cast<int64_t>(output_bytes.size()), "output")));
  }
  for (const GpuLaunch& launch : module.launches) {
    HONE_RETURN_IF_ERROR(CheckLaunch(launch, context));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<GpuProgram> program,
                        context.Load(module, "the kernel's code"));
  return CallLoaded(context, *program, /*first_launch=*/0, module, inputs, output_bytes);
}

absl::StatusOr<std::vector<std::string>> CallLoaded(GpuContext& context, GpuProgram& program,
                                                    size_t first_launch, const GpuModule& module,
                                                    absl::Span<const absl::string_view> inputs,
                                                    absl::Span<const int64_t> output_bytes) {
  Buffers buffers;
  for (const absl::string_view input : inputs) {
    const auto bytes = static_cast<int64_t>(input.size());
    HONE_ASSIGN_OR_RETURN(GpuMemory* const memory, buffers.Add(context, bytes));
    if (memory != nullptr) HONE_RETURN_IF_ERROR(memory->Write(0, bytes, input.data()));
  }
  std::vector<GpuMemory*> outputs;
  for (const int64_t bytes : output_bytes) {
    HONE_ASSIGN_OR_RETURN(outputs.emplace_back(), buffers.Add(context, bytes));
    if (bytes > 0) HONE_RETURN_IF_ERROR(outputs.back()->Fill(0, bytes, 0xff));
  }
  for (const int64_t bytes : {module.packed_bytes, module.workspace_bytes}) {
    HONE_RETURN_IF_ERROR(buffers.Add(context, bytes).status());
  }
  std::vector<size_t> order;  // of the launches
  for (const bool prepack : {true, false}) {
    for (size_t i = 0; i < module.launches.size(); ++i) {
      if (module.launches[i].prepack != prepack) continue;
      HONE_RETURN_IF_ERROR(program.SetArguments(first_launch + i, buffers.parameters));
      order.push_back(first_launch + i);
    }
  }
  if (!order.empty()) HONE_RETURN_IF_ERROR(program.Run(order, 1).status());
  std::vector<std::string> results;
  for (size_t o = 0; o < outputs.size(); ++o) {
    std::string& content = results.emplace_back(static_cast<size_t>(output_bytes[o]), '\0');
    if (content.empty()) continue;
    HONE_RETURN_IF_ERROR(outputs[o]->Read(0, output_bytes[o], content.data()));
  }
  return results;
}

}  // namespace hone::target
