#include "client/network/weights_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/digest.h"
#include "common/base/file.h"
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

absl::Status WriteAt(int file, const std::string& path, int64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
    bytes.remove_prefix(written);
    offset += written;
  }
  return absl::OkStatus();
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

// Computes the id of a file of this size, which is complete except for its header.
absl::StatusOr<Digest> DigestOfContent(int file, const std::string& path, int64_t bytes) {
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", path));
  const absl::string_view content(static_cast<const char*>(mapped), bytes);
  const Digest digest = DigestOf(content.substr(sizeof(HoneWeightsHeader)));
  munmap(mapped, bytes);
  return digest;
}

}  // namespace

absl::Status WriteWeights(const graph::Graph& graph, absl::Span<const NetworkKernel> kernels,
                          const std::string& path, PlannedNetwork& planned) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  const absl::Cleanup close_file = [&] { close(file); };
  if (ftruncate(file, planned.plan.weights_bytes) != 0) {
    return ErrnoStatus(errno, absl::StrCat("write ", path));
  }
  for (const WeightsPiece& piece : planned.pieces) {
    if (piece.constant != graph::kNoValue) {
      HONE_RETURN_IF_ERROR(
          WriteAt(file, path, piece.offset, graph.value(piece.constant).constant->bytes()));
      continue;
    }
    const PlanKernel& kernel = planned.plan.kernels[piece.task];
    HONE_ASSIGN_OR_RETURN(const target::KernelMemory packed,
                          Pack(graph, kernels[piece.task], piece, kernel.buffers));
    HONE_RETURN_IF_ERROR(
        WriteAt(file, path, piece.offset,
                {static_cast<const char*>(packed.get()), size_t(kernel.packed_bytes)}));
  }
  HONE_ASSIGN_OR_RETURN(planned.plan.weights,
                        DigestOfContent(file, path, planned.plan.weights_bytes));
  HoneWeightsHeader header = {};
  std::memcpy(header.magic, HONE_WEIGHTS_MAGIC, sizeof header.magic);
  header.version = HONE_WEIGHTS_VERSION;
  header.bytes = planned.plan.weights_bytes;
  std::memcpy(header.id, &planned.plan.weights, sizeof header.id);
  HONE_RETURN_IF_ERROR(
      WriteAt(file, path, 0, {reinterpret_cast<const char*>(&header), sizeof header}));
  if (fsync(file) != 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
  return absl::OkStatus();
}

}  // namespace hone::network
