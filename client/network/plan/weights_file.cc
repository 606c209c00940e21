#include "client/network/plan/weights_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/network/runtime/plan_format.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_memory.h"

namespace hone::network {
namespace {

// Writes a weights file (runtime/plan_format.h) piece by piece. Errors of all functions:
// ResourceExhausted: the disk is full. Others as for ErrnoStatus.
class WeightsWriter {
 public:
  // Creates a file of this size, with its header. What is not written is zero.
  static absl::StatusOr<WeightsWriter> Create(const std::string& path, int64_t bytes);
  WeightsWriter(WeightsWriter&& other)
      : path_(std::move(other.path_)),
        bytes_(other.bytes_),
        file_(std::exchange(other.file_, -1)) {}
  WeightsWriter& operator=(WeightsWriter&&) = delete;
  ~WeightsWriter();

  absl::Status Write(int64_t offset, absl::string_view bytes);
  // Writes the header. Returns the id of the content. The file is on the disk then.
  absl::StatusOr<Digest> Finish();

 private:
  WeightsWriter(std::string path, int64_t bytes, int file)
      : path_(std::move(path)), bytes_(bytes), file_(file) {}
  // The id of the file, which is complete except for its header.
  absl::StatusOr<Digest> ContentDigest() const;

  std::string path_;
  int64_t bytes_;
  int file_;
};

absl::StatusOr<WeightsWriter> WeightsWriter::Create(const std::string& path, int64_t bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  WeightsWriter writer(path, bytes, file);
  if (ftruncate(file, bytes) != 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
  return writer;
}

WeightsWriter::~WeightsWriter() {
  if (file_ >= 0) close(file_);
}

absl::Status WeightsWriter::Write(int64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("write ", path_));
    bytes.remove_prefix(written);
    offset += written;
  }
  return absl::OkStatus();
}

absl::StatusOr<Digest> WeightsWriter::ContentDigest() const {
  void* const mapped = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", path_));
  const absl::string_view content(static_cast<const char*>(mapped), bytes_);
  const Digest digest = DigestOf(content.substr(sizeof(HoneWeightsHeader)));
  munmap(mapped, bytes_);
  return digest;
}

absl::StatusOr<Digest> WeightsWriter::Finish() {
  HONE_ASSIGN_OR_RETURN(const Digest id, ContentDigest());
  HoneWeightsHeader header = {};
  std::memcpy(header.magic, HONE_WEIGHTS_MAGIC, sizeof header.magic);
  header.version = HONE_WEIGHTS_VERSION;
  header.bytes = bytes_;
  std::memcpy(header.id, &id, sizeof header.id);
  HONE_RETURN_IF_ERROR(Write(0, {reinterpret_cast<const char*>(&header), sizeof header}));
  if (fsync(file_) != 0) return ErrnoStatus(errno, absl::StrCat("write ", path_));
  return id;
}

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

absl::Status WriteWeights(absl::Span<const graph::Graph* const> graphs,
                          absl::Span<const NetworkKernel> kernels, const std::string& path,
                          PlannedNetwork& planned) {
  HONE_ASSIGN_OR_RETURN(WeightsWriter writer,
                        WeightsWriter::Create(path, planned.plan.weights_bytes));
  for (const WeightsPiece& piece : planned.pieces) {
    const graph::Graph& graph = *graphs[piece.size];
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
