#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/bench/compare/contender.h"

namespace hone::compare {
namespace {

constexpr int64_t kPage = 4096;

std::shared_ptr<char> Allocate(int64_t bytes) {
  const int64_t rounded = (bytes + kPage - 1) / kPage * kPage;
  std::shared_ptr<char> memory(static_cast<char*>(std::aligned_alloc(kPage, rounded)), std::free);
  std::memset(memory.get(), 1, rounded);
  return memory;
}

}  // namespace

Copy::Copy(int64_t bytes)
    : half_(std::max<int64_t>(bytes / 2, 1)), from_(Allocate(half_)), to_(Allocate(half_)) {}

absl::Status Copy::Run() {
#pragma omp parallel
  {
    const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
    const int64_t begin = half_ * thread / threads, end = half_ * (thread + 1) / threads;
    std::memcpy(to_.get() + begin, from_.get() + begin, end - begin);
  }
  return absl::OkStatus();
}

}  // namespace hone::compare
