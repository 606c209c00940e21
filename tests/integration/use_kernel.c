/* A program around an exported matmul: calls it as its header says, and checks the result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "matmul.h"

#define M 48
#define N 80
#define K 64

/* One part for each of the threads, one after the other. */
static void run_parts(const HoneRuntime* runtime, int64_t extent, int64_t chunk, int32_t threads,
                      void (*body)(void* context, int64_t begin, int64_t end, int64_t thread),
                      void* context) {
  (void)chunk;
  if (threads > runtime->threads) abort();
  for (int32_t t = 0; t < threads; ++t)
    body(context, extent * t / threads, extent * (t + 1) / threads, t);
}

int main(void) {
  const int64_t shape_a[MATMUL_A_RANK] = MATMUL_A_SHAPE;
  const int64_t shape_b[MATMUL_B_RANK] = MATMUL_B_SHAPE;
  if (shape_a[0] != M || shape_a[1] != K || shape_b[1] != N || MATMUL_C_ELEMENTS != M * N) return 2;
  float* A = aligned_alloc(MATMUL_ALIGNMENT, MATMUL_A_BYTES);
  float* B = aligned_alloc(MATMUL_ALIGNMENT, MATMUL_B_BYTES);
  float* C = aligned_alloc(MATMUL_ALIGNMENT, MATMUL_C_BYTES);
  for (int i = 0; i < M * K; ++i) A[i] = (float)(i % 7 - 3);
  for (int i = 0; i < K * N; ++i) B[i] = (float)(i % 5 - 2);
  void* buffers[MATMUL_BUFFERS];
  buffers[MATMUL_A_INDEX] = A;
  buffers[MATMUL_B_INDEX] = B;
  buffers[MATMUL_C_INDEX] = C;
  if (matmul_abi() != 2 || matmul_threads() < 1) return 3;
  HoneRuntime runtime = {run_parts, 3};
  const int64_t workspace_bytes = matmul_workspace_bytes(runtime.threads);
  void* packed = matmul_packed_bytes() > 0
                     ? aligned_alloc(64, (matmul_packed_bytes() + 63) / 64 * 64)
                     : NULL;
  void* workspace =
      workspace_bytes > 0 ? aligned_alloc(64, (workspace_bytes + 63) / 64 * 64) : NULL;
  if (packed && matmul_prepack(buffers, packed) != HONE_KERNEL_OK) return 4;
  HoneRuntime threads = hone_threads(3);
  const HoneRuntime* const runtimes[] = {&runtime, &threads, NULL};
  for (size_t r = 0; r < sizeof runtimes / sizeof *runtimes; ++r) {
    for (int i = 0; i < M * N; ++i) C[i] = NAN;
    if (matmul_run(buffers, packed, workspace, runtimes[r]) != HONE_KERNEL_OK) return 5;
    for (int i = 0; i < M; ++i) {
      for (int j = 0; j < N; ++j) {
        float expected = 0; /* exact: small integers */
        for (int k = 0; k < K; ++k) expected += A[i * K + k] * B[k * N + j];
        if (C[i * N + j] != expected) {
          printf("C[%d, %d] is %g, not %g\n", i, j, C[i * N + j], expected);
          return 1;
        }
      }
    }
  }
  if (matmul_run((void* [MATMUL_BUFFERS]){A + 1, B, C}, packed, workspace, &runtime) !=
      HONE_KERNEL_MISALIGNED_BUFFER)
    return 6;
  if (matmul_run((void* [MATMUL_BUFFERS]){A, B, A}, packed, workspace, &runtime) !=
      HONE_KERNEL_OVERLAP)
    return 7;
  printf("right\n");
  return 0;
}
