#include "client/network/plan/weights_file.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/network/plan/weights_writer.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_memory.h"

namespace hone::network {
namespace {

absl::StatusOr<target::KernelMemory> Allocate(int64_t bytes) {
  target::KernelMemory memory = target::AllocateKernelMemory(bytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("out of memory for ", bytes, " bytes"));
  }
  // So that bytes that no kernel writes are reproducible.
  std::memset(memory.get(), 0, target::AlignedBytes(bytes));
  return memory;
}

// Packs the constants of a step.
absl::StatusOr<target::KernelMemory> Pack(const graph::Graph& graph, const NetworkKernel& kernel,
                                          const WeightsPiece& piece, int buffers) {
  std::vector<target::KernelMemory> constants;
  std::vector<void*> addresses(buffers, nullptr);
  for (size_t i = 0; i < piece.inputs.size(); ++i) {
    if (piece.inputs[i] == graph::kNoValue) continue;
    const absl::string_view bytes = graph.value(piece.inputs[i]).constant->bytes();
    HONE_ASSIGN_OR_RETURN(constants.emplace_back(), Allocate(bytes.size()));
    std::memcpy(constants.back().get(), bytes.data(), bytes.size());
    addresses[i] = constants.back().get();
  }
  const target::KernelLibrary& library = kernel.loaded->library();
  HONE_ASSIGN_OR_RETURN(target::KernelMemory packed, Allocate(library.packed_bytes()));
  HONE_RETURN_IF_ERROR(
      target::KernelStatusToStatus(library.Prepack(addresses.data(), packed.get())));
  return packed;
}

}  // namespace

absl::Status WriteWeights(const graph::Graph& graph, absl::Span<const NetworkKernel> kernels,
                          const std::string& path, PlannedNetwork& planned) {
  HONE_ASSIGN_OR_RETURN(WeightsWriter writer,
                        WeightsWriter::Create(path, planned.plan.weights_bytes));
  for (const WeightsPiece& piece : planned.pieces) {
    if (piece.constant != graph::kNoValue) {
      HONE_RETURN_IF_ERROR(
          writer.Write(piece.offset, graph.value(piece.constant).constant->bytes()));
      continue;
    }
    const PlanKernel& kernel = planned.plan.kernels[piece.task];
    HONE_ASSIGN_OR_RETURN(const target::KernelMemory packed,
                          Pack(graph, kernels[piece.task], piece, kernel.buffers));
    HONE_RETURN_IF_ERROR(writer.Write(
        piece.offset, {static_cast<const char*>(packed.get()), size_t(kernel.packed_bytes)}));
  }
  HONE_ASSIGN_OR_RETURN(planned.plan.weights, writer.Finish());
  return absl::OkStatus();
}

}  // namespace hone::network
