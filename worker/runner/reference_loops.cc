#include "worker/runner/reference_loops.h"

namespace hone::runner {
namespace {

// FMA latency times units is at most 4 × 2 = 8 vectors on most CPUs (5 × 2 on some). 12 chains fit
// into 16 registers beside the two factors.
constexpr int kChains = 12;

#if defined(__x86_64__)
#define HONE_VECTOR_REGISTER "+v"
#else
#define HONE_VECTOR_REGISTER "+w"
#endif

// Inlined into functions that each allow different instructions, and compiled for these. The empty
// assembly statement keeps the optimizer from computing or removing the values.
template <int kLanes>
[[gnu::always_inline]] inline double RunChains(int64_t iterations) {
  typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
  Vector sums[kChains];
  for (Vector& sum : sums) sum = Vector{} + 1.0f;
  Vector factor = Vector{} + 0.5f;
  Vector term = Vector{} + 0.25f;
  asm volatile("" : HONE_VECTOR_REGISTER(factor), HONE_VECTOR_REGISTER(term));
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + term;
  }
  for (Vector& sum : sums) asm volatile("" : HONE_VECTOR_REGISTER(sum));
  return static_cast<double>(iterations) * kChains * kLanes * 2;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) double Fma512(int64_t iterations) {
  return RunChains<16>(iterations);
}
__attribute__((target("avx2,fma"))) double Fma256(int64_t iterations) {
  return RunChains<8>(iterations);
}
#endif
// On x86-64, this is a multiply and an add, because not every CPU has the fused operation.
double Fma128(int64_t iterations) { return RunChains<4>(iterations); }

}  // namespace

std::vector<int> FmaWidths() {
  std::vector<int> widths = {128};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) widths.push_back(256);
  if (__builtin_cpu_supports("avx512f")) widths.push_back(512);
#endif
  return widths;
}

double RunFma([[maybe_unused]] int width_bits, int64_t iterations) {
#if defined(__x86_64__)
  if (width_bits == 512) return Fma512(iterations);
  if (width_bits == 256) return Fma256(iterations);
#endif
  return Fma128(iterations);
}

uint64_t RunStream(const void* data, size_t bytes) {
  const auto* const words = static_cast<const uint64_t*>(data);
  uint64_t sums[8] = {};
  // Eight sums per cache line. The compiler vectorizes them, so memory is the limit.
  for (size_t i = 0; i < bytes / 8; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace hone::runner
