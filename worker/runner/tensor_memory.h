#ifndef HONE_WORKER_RUNNER_TENSOR_MEMORY_H_
#define HONE_WORKER_RUNNER_TENSOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::runner {

// What stands before and behind the tensors of a kernel, and shows writes outside of them.
inline constexpr int64_t kCanaryBytes = 4096;
inline constexpr unsigned char kCanary = 0xa5;
// Returns the position of the nearest byte that was written outside, in bytes from the start of
// the data: negative before it, ≥ `bytes` behind it. nullopt if the canaries, which end at `begin`
// and begin at `end`, are intact.
std::optional<int64_t> FindWriteOutside(const unsigned char* begin, const unsigned char* end,
                                        int64_t bytes);

// Memory for one buffer of a kernel: aligned to kBufferAlignment, on huge pages where the system
// has them, and touched in advance. `page_offset` sets the offset within its first page, so
// processes with different seeds have different cache conflicts. Two canaries detect writes outside
// it. Owned by one thread.
class TensorMemory {
 public:
  // `page_offset` is taken modulo 4096 and rounded down to the alignment.
  // ResourceExhausted: the system refuses that much memory.
  static absl::StatusOr<std::unique_ptr<TensorMemory>> Create(int64_t bytes, uint64_t page_offset);
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  absl::string_view view() const { return {static_cast<const char*>(data_), bytes_}; }

  // Changes the number of bytes, and puts the canary behind them. REQUIRES: at most as many as at
  // creation.
  void Resize(size_t bytes);
  size_t capacity() const { return capacity_; }

  // Sets every bit. This is a NaN in each float type, so elements that a kernel leaves out are
  // found.
  void Poison();

  // Returns the position of the nearest byte that was written outside, in bytes from the start of
  // the data: negative before it, ≥ bytes() behind it. nullopt if the canaries are intact. Restores
  // the canaries.
  std::optional<int64_t> WrittenOutside();

 private:
  TensorMemory(void* mapping, size_t mapped, void* data, size_t bytes);
  void FillCanaries();

  void* mapping_;
  size_t mapped_;
  void* data_;
  const size_t capacity_;
  size_t bytes_;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_TENSOR_MEMORY_H_
