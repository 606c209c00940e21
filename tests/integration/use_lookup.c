/* A program that finds exported kernels at run time, from several threads: use_lookup FOLDER. */
#define _POSIX_C_SOURCE 200112L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "hone_lookup.h"

#define THREADS 4
#define M 48
#define N 80
#define K 64

static hone_lookup* lookup;

/* Null for 0 bytes. */
static void* allocate(int64_t bytes) {
  void* memory = NULL;
  if (bytes > 0 && posix_memalign(&memory, HONE_LOOKUP_ALIGNMENT, (size_t)bytes) != 0) abort();
  return memory;
}

static const hone_lookup_kernel* find(const char* workload) {
  const hone_lookup_kernel* kernel = NULL;
  if (hone_lookup_find(lookup, workload, 0, &kernel) != HONE_LOOKUP_OK) {
    printf("%s: %s\n", workload, hone_lookup_error());
    exit(1);
  }
  return kernel;
}

/* Fills the inputs with small integers, runs the kernel in both ways, and compares the output with
 * C = A * B + D. D is the third input, if there is one. */
static void check(const char* workload) {
  const hone_lookup_kernel* kernel = find(workload);
  void* buffers[4];
  void* packed = allocate(kernel->packed_bytes);
  HoneRuntime runtime = hone_lookup_threads(2);
  void* workspace = allocate(hone_lookup_workspace_bytes(kernel, runtime.threads));
  const float *a, *b, *d;
  const float* c;
  int32_t which, i, j, k, once;
  if (kernel->buffer_count < 3 || kernel->buffer_count > 4) exit(2);
  for (which = 0; which < kernel->buffer_count; ++which) {
    const hone_lookup_buffer* buffer = &kernel->buffers[which];
    float* values = buffers[which] = allocate(buffer->bytes);
    for (i = 0; i < buffer->bytes / 4; ++i) values[i] = (float)((i * 5 + which) % 7 - 3);
  }
  a = buffers[0];
  b = buffers[1];
  d = kernel->buffer_count == 4 ? buffers[2] : NULL;
  c = buffers[kernel->buffer_count - 1];
  for (once = 0; once < 3; ++once) {
    for (i = 0; i < M * N; ++i) ((float*)buffers[kernel->buffer_count - 1])[i] = -1e30f;
    if (once == 1) {
      if (hone_lookup_call(kernel, buffers) != HONE_LOOKUP_OK) exit(3);
    } else {
      if (packed != NULL && kernel->prepack(buffers, packed) != HONE_KERNEL_OK) exit(4);
      if (hone_lookup_run(kernel, buffers, packed, workspace, once == 0 ? &runtime : NULL) !=
          HONE_KERNEL_OK)
        exit(5);
    }
    for (i = 0; i < M; ++i) {
      for (j = 0; j < N; ++j) {
        float expected = d != NULL ? d[j] : 0; /* exact: small integers */
        for (k = 0; k < K; ++k) expected += a[i * K + k] * b[k * N + j];
        if (c[i * N + j] != expected) {
          printf("%s: [%d, %d] is %g, not %g\n", workload, i, j, c[i * N + j], expected);
          exit(6);
        }
      }
    }
  }
  for (which = 0; which < kernel->buffer_count; ++which) free(buffers[which]);
  free(packed);
  free(workspace);
}

static void* check_all(void* unused) {
  check("matmul m=48 n=80 k=64");
  check("matmul k=64 acc=f32 m=48 n=80");
  check("projection");
  return unused;
}

int main(int argc, char** argv) {
  pthread_t threads[THREADS];
  const hone_lookup_kernel* kernel;
  int i;
  if (argc != 2 || hone_lookup_open(argv[1], &lookup) != HONE_LOOKUP_OK) {
    printf("%s\n", hone_lookup_error());
    return 1;
  }
  for (i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, check_all, NULL);
  for (i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  kernel = find("matmul m=48 n=80 k=64");
  if (kernel->tolerance != 0 || kernel->latency_ns <= 0 || kernel->buffers[2].shape[1] != N)
    return 7;
  if (find(kernel->workload) != kernel) return 8;
  if (hone_lookup_find(lookup, "matmul m=49 n=80 k=64", 0, &kernel) != HONE_LOOKUP_NOT_FOUND)
    return 9;
  hone_lookup_close(lookup);
  if (hone_lookup_open("/nowhere", &lookup) != HONE_LOOKUP_BAD_FOLDER) return 10;
  printf("right\n");
  return 0;
}
