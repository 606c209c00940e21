#include "worker/runner/reference_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace hone::runner {
namespace {

// FMA latency times units is at most 4 × 2 = 8 vectors on most CPUs (5 × 2 on some). 12 chains fit
// into 16 registers beside the two factors.
constexpr int kChains = 12;

// Keeps the optimizer from removing the values.
template <typename Vector>
inline void Keep(Vector& value) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(value));
#else
  asm volatile("" : "+w"(value));
#endif
}

#if defined(__x86_64__)

__attribute__((target("avx512f"))) double Fma512(int64_t iterations) {
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1);
  __m512 factor = _mm512_set1_ps(0.5f);
  __m512 term = _mm512_set1_ps(0.25f);
  Keep(factor);
  Keep(term);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm512_fmadd_ps(sums[c], factor, term);
  }
  for (auto& sum : sums) Keep(sum);
  return static_cast<double>(iterations) * kChains * 16 * 2;
}

__attribute__((target("avx2,fma"))) double Fma256(int64_t iterations) {
  __m256 sums[kChains];
  for (auto& sum : sums) sum = _mm256_set1_ps(1);
  __m256 factor = _mm256_set1_ps(0.5f);
  __m256 term = _mm256_set1_ps(0.25f);
  Keep(factor);
  Keep(term);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm256_fmadd_ps(sums[c], factor, term);
  }
  for (auto& sum : sums) Keep(sum);
  return static_cast<double>(iterations) * kChains * 8 * 2;
}

// For every x86-64 CPU: a multiply and an add instead of a fused operation.
double Sse128(int64_t iterations) {
  __m128 sums[kChains];
  for (auto& sum : sums) sum = _mm_set1_ps(1);
  __m128 factor = _mm_set1_ps(0.5f);
  __m128 term = _mm_set1_ps(0.25f);
  Keep(factor);
  Keep(term);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm_add_ps(_mm_mul_ps(sums[c], factor), term);
  }
  for (auto& sum : sums) Keep(sum);
  return static_cast<double>(iterations) * kChains * 4 * 2;
}

#elif defined(__aarch64__)

double Neon128(int64_t iterations) {
  float32x4_t sums[kChains];
  for (auto& sum : sums) sum = vdupq_n_f32(1);
  float32x4_t factor = vdupq_n_f32(0.5f);
  float32x4_t term = vdupq_n_f32(0.25f);
  Keep(factor);
  Keep(term);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = vfmaq_f32(term, sums[c], factor);
  }
  for (auto& sum : sums) Keep(sum);
  return static_cast<double>(iterations) * kChains * 4 * 2;
}

#endif

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

double RunFma(int width_bits, int64_t iterations) {
#if defined(__x86_64__)
  if (width_bits == 512) return Fma512(iterations);
  if (width_bits == 256) return Fma256(iterations);
  return Sse128(iterations);
#else
  (void)width_bits;
  return Neon128(iterations);
#endif
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
