#include "worker/runner/gpu_buffer.h"

#include <algorithm>
#include <array>
#include <new>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::runner {
namespace {

constexpr int64_t kPlacementPage = 4096;
constexpr int64_t kCanaryBytes = 4096;
constexpr unsigned char kCanary = 0xa5;
constexpr unsigned char kPoison = 0xff;

std::unique_ptr<char[]> HostMemory(int64_t bytes) {
  return std::unique_ptr<char[]>(new (std::nothrow) char[static_cast<size_t>(bytes)]);
}

absl::Status NoHostMemory(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory on the host for a copy of ", bytes, " bytes"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuBuffer>> GpuBuffer::Create(target::GpuContext& context,
                                                             int64_t bytes, uint64_t placement) {
  const int64_t alignment = context.buffer_alignment;
  const auto wanted = kCanaryBytes + static_cast<int64_t>(placement % kPlacementPage);
  const int64_t offset = (wanted + alignment - 1) / alignment * alignment;
  const int64_t most = context.max_allocation_bytes - offset - kCanaryBytes;
  if (bytes <= 0 || bytes > most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a buffer of ", bytes, " bytes; the device allows 1 to ", most, " in one buffer"));
  }
  const int64_t size = offset + bytes + kCanaryBytes;
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<target::GpuMemory> memory,
                        context.Allocate(size, offset, bytes));
  // A device that is out of memory may say so only at the first use.
  if (const absl::Status filled = memory->Fill(0, size, kCanary); !filled.ok()) {
    if (context.lost()) return filled;
    return absl::ResourceExhaustedError(absl::StrCat("no memory on the device for a buffer of ",
                                                     bytes, " bytes: ", filled.message()));
  }
  return std::unique_ptr<GpuBuffer>(new GpuBuffer(std::move(memory), bytes, offset));
}

absl::Status GpuBuffer::Write(absl::FunctionRef<void(void*)> fill) {
  host_ = nullptr;
  const std::unique_ptr<char[]> content = HostMemory(bytes_);
  if (content == nullptr) return NoHostMemory(bytes_);
  fill(content.get());
  return memory_->Write(offset_, bytes_, content.get());
}

absl::StatusOr<const void*> GpuBuffer::Read() {
  if (host_ == nullptr) host_ = HostMemory(bytes_);
  if (host_ == nullptr) return NoHostMemory(bytes_);
  HONE_RETURN_IF_ERROR(memory_->Read(offset_, bytes_, host_.get()));
  return host_.get();
}

absl::Status GpuBuffer::Poison() {
  host_ = nullptr;
  return memory_->Fill(offset_, bytes_, kPoison);
}

absl::StatusOr<std::optional<int64_t>> GpuBuffer::WrittenOutside() {
  std::array<unsigned char, kCanaryBytes> before, after;
  HONE_RETURN_IF_ERROR(memory_->Read(offset_ - kCanaryBytes, kCanaryBytes, before.data()));
  HONE_RETURN_IF_ERROR(memory_->Read(offset_ + bytes_, kCanaryBytes, after.data()));
  std::optional<int64_t> found;
  for (int64_t i = 0; i < kCanaryBytes && !found; ++i) {
    if (after[i] != kCanary) found = bytes_ + i;
    if (before[kCanaryBytes - 1 - i] != kCanary) found = -1 - i;
  }
  if (found) {
    HONE_RETURN_IF_ERROR(memory_->Fill(offset_ - kCanaryBytes, kCanaryBytes, kCanary));
    HONE_RETURN_IF_ERROR(memory_->Fill(offset_ + bytes_, kCanaryBytes, kCanary));
  }
  return found;
}

}  // namespace hone::runner
