/* Runs the kernel that it is linked with once, on zeros, as if constant inputs were packed already. */
#include <stdlib.h>
#include <string.h>

#include "common/target/hone_runtime.h"

int32_t hone_kernel_run(void* const* buffers, const void* packed, void* workspace, const HoneRuntime* runtime);
int64_t hone_kernel_packed_bytes(void);
int64_t hone_kernel_workspace_bytes(int32_t threads);

enum { kBufferBytes = 4 << 20, kBuffers = 8 };

static void RunAll(const HoneRuntime* runtime, int64_t extent, int64_t chunk, int32_t threads,
                   void (*body)(void*, int64_t, int64_t, int64_t), void* context) {
  (void)runtime, (void)chunk, (void)threads;
  body(context, 0, extent, 0);
}

static void* Zeros(int64_t bytes) {
  const int64_t rounded = (bytes + 128) / 64 * 64;
  void* const memory = aligned_alloc(64, (size_t)rounded);
  if (memory == NULL) abort();
  return memset(memory, 0, (size_t)rounded);
}

int main(void) {
  void* buffers[kBuffers];
  for (int i = 0; i < kBuffers; ++i) buffers[i] = Zeros(kBufferBytes);
  void* const packed = Zeros(hone_kernel_packed_bytes());
  const HoneRuntime runtime = {RunAll, 1};
  return hone_kernel_run(buffers, packed, Zeros(hone_kernel_workspace_bytes(1)), &runtime);
}
