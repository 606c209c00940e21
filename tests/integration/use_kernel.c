/* A program around an exported matmul: calls it as its header says, and checks the result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "matmul.h"

#define M 48
#define N 80
#define K 64

int main(void) {
  const int64_t shape_a[MATMUL_A_RANK] = MATMUL_A_SHAPE;
  const int64_t shape_b[MATMUL_B_RANK] = MATMUL_B_SHAPE;
  if (shape_a[0] != M || shape_a[1] != K || shape_b[1] != N || MATMUL_C_ELEMENTS != M * N) return 2;
  float* A = aligned_alloc(MATMUL_ALIGNMENT, MATMUL_A_BYTES);
  float* B = aligned_alloc(MATMUL_ALIGNMENT, MATMUL_B_BYTES);
  float* C = aligned_alloc(MATMUL_ALIGNMENT, MATMUL_C_BYTES);
  for (int i = 0; i < M * K; ++i) A[i] = (float)(i % 7 - 3);
  for (int i = 0; i < K * N; ++i) B[i] = (float)(i % 5 - 2);
  for (int i = 0; i < M * N; ++i) C[i] = NAN;
  void* buffers[MATMUL_BUFFERS];
  buffers[MATMUL_A_INDEX] = A;
  buffers[MATMUL_B_INDEX] = B;
  buffers[MATMUL_C_INDEX] = C;
  if (hone_kernel_workspace_bytes() != MATMUL_WORKSPACE_BYTES) return 3;
  void* packed = hone_kernel_packed_bytes() > 0
                     ? aligned_alloc(64, (hone_kernel_packed_bytes() + 63) / 64 * 64)
                     : NULL;
  void* workspace = hone_kernel_workspace_bytes() > 0
                        ? aligned_alloc(64, (hone_kernel_workspace_bytes() + 63) / 64 * 64)
                        : NULL;
  if (packed && hone_kernel_prepack(buffers, packed) != HONE_KERNEL_OK) return 4;
  if (hone_kernel_run(buffers, packed, workspace) != HONE_KERNEL_OK) return 5;
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
  if (hone_kernel_run((void* [MATMUL_BUFFERS]){A + 1, B, C}, packed, workspace) !=
      HONE_KERNEL_MISALIGNED_BUFFER)
    return 6;
  printf("right\n");
  return 0;
}
