/* Multiplies two matrices with the best kernel that FOLDER has, and otherwise with three loops. */
#include <stdio.h>
#include <stdlib.h>

#include "hone_lookup.h"

enum { kSize = 64 };

static void multiply(const float* a, const float* b, float* c) {
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      float sum = 0;
      for (int k = 0; k < kSize; ++k) sum += a[i * kSize + k] * b[k * kSize + j];
      c[i * kSize + j] = sum;
    }
  }
}

int main(int argc, char** argv) {
  const size_t bytes = kSize * kSize * sizeof(float);
  float* const a = aligned_alloc(64, bytes);
  float* const b = aligned_alloc(64, bytes);
  float* const c = aligned_alloc(64, bytes);
  for (int i = 0; i < kSize * kSize; ++i) {
    a[i] = (float)(i % 7);
    b[i] = (float)(i % 5);
  }
  hone_lookup* lookup = NULL;
  const hone_lookup_kernel* kernel = NULL;
  const char* const folder = argc > 1 ? argv[1] : "kernels";
  const char* used = "three loops";
  if (hone_lookup_open(folder, &lookup) == HONE_LOOKUP_OK &&
      hone_lookup_find(lookup, "matmul m=64 n=64 k=64", 0, &kernel) == HONE_LOOKUP_OK) {
    void* const buffers[] = {a, b, c};
    if (hone_lookup_call(kernel, buffers) != HONE_LOOKUP_OK) {
      fprintf(stderr, "%s\n", hone_lookup_error());
      return 1;
    }
    used = "a tuned kernel";
  } else {
    multiply(a, b, c);
  }
  printf("%s: c[1][2] = %g\n", used, (double)c[kSize + 2]);
  hone_lookup_close(lookup);
  free(a);
  free(b);
  free(c);
  return 0;
}
