#ifndef HONE_TESTS_BENCH_CUDA_MEMORY_COUNTS_H_
#define HONE_TESTS_BENCH_CUDA_MEMORY_COUNTS_H_

#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace hone::bench {

// Instructions in the code of a kernel, each counted once.
struct AccessCount {
  int all = 0;
  int wide = 0;  // those that move at least 16 bytes per thread
  friend bool operator==(const AccessCount&, const AccessCount&) = default;
};

struct MemoryCounts {
  AccessCount global_loads;  // also copies from global to shared memory
  AccessCount shared_loads;
  AccessCount global_stores;
  friend bool operator==(const MemoryCounts&, const MemoryCounts&) = default;
};

using CountsByKernel = std::map<std::string, MemoryCounts, std::less<>>;

// Counts the instructions in a listing of nvdisasm.
CountsByKernel CountSass(absl::string_view listing);
// Counts those in PTX, of which the assembler may still join or remove some.
CountsByKernel CountPtx(absl::string_view ptx);

}  // namespace hone::bench

#endif  // HONE_TESTS_BENCH_CUDA_MEMORY_COUNTS_H_
