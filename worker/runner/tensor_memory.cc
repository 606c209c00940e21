#include "worker/runner/tensor_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/target/kernel_abi.h"

namespace hone::runner {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = 2 << 20;

}  // namespace

std::optional<int64_t> FindWriteOutside(const unsigned char* begin, const unsigned char* end,
                                        int64_t bytes) {
  for (int64_t i = 0; i < kCanaryBytes; ++i) {
    if (*(begin - 1 - i) != kCanary) return -1 - i;
    if (end[i] != kCanary) return bytes + i;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<TensorMemory>> TensorMemory::Create(int64_t bytes,
                                                                   uint64_t page_offset) {
  const size_t offset = page_offset % kPage / target::kBufferAlignment * target::kBufferAlignment;
  // The data begins one page plus the offset after an aligned address. The canary before the data
  // fits into that page.
  const size_t size = static_cast<size_t>(bytes);
  const size_t alignment = size >= kHugePage ? kHugePage : kPage;
  const size_t wanted = alignment + kPage + offset + size + kCanaryBytes;
  void* const mapping =
      bytes < 0 ? MAP_FAILED
                : mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a buffer of ", bytes, " bytes"));
  }
  const auto begin = reinterpret_cast<uintptr_t>(mapping);
  const uintptr_t aligned = (begin + alignment - 1) / alignment * alignment;
  if (alignment == kHugePage) {
    madvise(reinterpret_cast<void*>(aligned), begin + wanted - aligned, MADV_HUGEPAGE);
  }
  // The pages are touched in advance, so that no page fault occurs during a timing.
  if (madvise(mapping, wanted, MADV_POPULATE_WRITE) != 0) {
    if (errno != EINVAL) {
      munmap(mapping, wanted);
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a buffer of ", bytes, " bytes"));
    }
    std::memset(mapping, 0, wanted);  // Linux before 5.14
  }
  auto memory = std::unique_ptr<TensorMemory>(
      new TensorMemory(mapping, wanted, reinterpret_cast<void*>(aligned + kPage + offset), size));
  memory->FillCanaries();
  return memory;
}

TensorMemory::TensorMemory(void* mapping, size_t mapped, void* data, size_t bytes)
    : mapping_(mapping), mapped_(mapped), data_(data), capacity_(bytes), bytes_(bytes) {}

TensorMemory::~TensorMemory() { munmap(mapping_, mapped_); }

void TensorMemory::Resize(size_t bytes) {
  bytes_ = bytes;
  FillCanaries();
}

void TensorMemory::Poison() { std::memset(data_, 0xff, bytes_); }

void TensorMemory::FillCanaries() {
  char* const data = static_cast<char*>(data_);
  std::memset(data - kCanaryBytes, kCanary, kCanaryBytes);
  std::memset(data + bytes_, kCanary, kCanaryBytes);
}

std::optional<int64_t> TensorMemory::WrittenOutside() {
  const auto* const data = static_cast<const unsigned char*>(data_);
  const std::optional<int64_t> found = FindWriteOutside(data, data + bytes_, bytes_);
  if (found) FillCanaries();
  return found;
}

}  // namespace hone::runner
