// C[64, 48] = A[64, 32] · B[32, 48] in f32, repeated REPEATS times: kernels with a known ratio of
// their times.
#include <cstdint>

#include "common/target/kernel_abi.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kM = 64, kN = 48, kK = 32;

void Rows(void* const* buffers, int64_t begin, int64_t end) {
  const float* const a = static_cast<const float*>(buffers[0]);
  const float* const b = static_cast<const float*>(buffers[1]);
  float* const c = static_cast<float*>(buffers[2]);
  for (int64_t i = begin; i < end; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += a[i * kK + k] * b[k * kN + j];
      c[i * kN + j] = sum;
    }
  }
}

}  // namespace

EXPORT int32_t hone_kernel_abi() { return hone::target::kKernelAbiVersion; }
EXPORT int32_t hone_kernel_threads() { return 1; }
EXPORT int64_t hone_kernel_workspace_bytes(int32_t) { return 0; }
EXPORT int64_t hone_kernel_packed_bytes() { return 0; }
EXPORT int64_t hone_kernel_range_extent() { return kM; }
EXPORT int32_t hone_kernel_prepack(void* const*, void*) { return 0; }
EXPORT int32_t hone_kernel_range(void* const* buffers, const void*, void*, int64_t begin,
                                 int64_t end, int64_t) {
  Rows(buffers, begin, end);
  return 0;
}
EXPORT int32_t hone_kernel_run(void* const* buffers, const void*, void*, const HoneRuntime*) {
  for (int repeat = 0; repeat < REPEATS; ++repeat) {
    Rows(buffers, 0, kM);
    asm volatile("" ::: "memory");
  }
  return 0;
}
