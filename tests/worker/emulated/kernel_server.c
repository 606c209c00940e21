/* Runs kernels on behalf of a program of another architecture: it is cross-compiled, started under an emulator and reads
 * requests from standard input until its end. Numbers have the byte order of both machines, which is the same.
 *
 * Request:  int64 bytes of the shared object; the shared object; int32 buffers; int32 threads; per buffer int64 bytes,
 *           int64 distance from an aligned address; then the contents of all buffers.
 * Response: int64 bytes of a message; the message. If it is empty, the contents of all buffers follow. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/target/hone_runtime.h"

enum { kGuardBytes = 4096, kGuard = 0xa5, kMaxBuffers = 64 };

/* Memory with guard bytes on both sides. */
struct Guarded {
  unsigned char* memory;
  int64_t begin, bytes;
};

static struct Guarded Allocate(int64_t bytes, int64_t offset) {
  struct Guarded guarded = {NULL, kGuardBytes + offset, bytes};
  const int64_t total = (guarded.begin + bytes + kGuardBytes + 4095) / 4096 * 4096;
  guarded.memory = aligned_alloc(4096, (size_t)total);
  if (guarded.memory == NULL) abort();
  memset(guarded.memory, kGuard, (size_t)total);
  return guarded;
}
static unsigned char* Data(const struct Guarded* guarded) { return guarded->memory + guarded->begin; }
static int IsIntact(const struct Guarded* guarded) {
  const unsigned char* const data = Data(guarded);
  for (int64_t i = 0; i < kGuardBytes; ++i) {
    if (data[-1 - i] != kGuard || data[guarded->bytes + i] != kGuard) return 0;
  }
  return 1;
}

static int Read(void* memory, int64_t bytes) {
  return bytes == 0 || fread(memory, (size_t)bytes, 1, stdin) == 1;
}
static void Write(const void* memory, int64_t bytes) {
  if (bytes != 0 && fwrite(memory, (size_t)bytes, 1, stdout) != 1) exit(1);
}
static void Need(int holds) {
  if (!holds) {
    fprintf(stderr, "kernel_server: a request is incomplete\n");
    exit(1);
  }
}

/* One thread does all parts, the last part first: kernels must not depend on the order. */
static void RunParts(const struct HoneRuntime* runtime, int64_t extent, int64_t chunk, int32_t threads,
                     void (*body)(void*, int64_t, int64_t, int64_t), void* context) {
  if (threads > runtime->threads) threads = runtime->threads;
  const int64_t size = chunk > 0 ? chunk : (extent + threads - 1) / threads;
  for (int64_t part = (extent + size - 1) / size - 1; part >= 0; --part) {
    const int64_t end = (part + 1) * size < extent ? (part + 1) * size : extent;
    body(context, part * size, end, part % threads);
  }
}

/* Returns "" or what is wrong. */
static const char* Run(void* library, const struct Guarded* buffers, int count, int32_t threads) {
  static char message[256];
  void* pointers[kMaxBuffers];
  for (int i = 0; i < count; ++i) pointers[i] = Data(&buffers[i]);
  int64_t (*packed_bytes)(void) = (int64_t(*)(void))dlsym(library, "hone_kernel_packed_bytes");
  int64_t (*workspace_bytes)(int32_t) = (int64_t(*)(int32_t))dlsym(library, "hone_kernel_workspace_bytes");
  int32_t (*prepack)(void* const*, void*) = (int32_t(*)(void* const*, void*))dlsym(library, "hone_kernel_prepack");
  int32_t (*run)(void* const*, const void*, void*, const struct HoneRuntime*) =
      (int32_t(*)(void* const*, const void*, void*, const struct HoneRuntime*))dlsym(library, "hone_kernel_run");
  if (packed_bytes == NULL || workspace_bytes == NULL || prepack == NULL || run == NULL) {
    return "the shared object lacks a function of the interface of kernels";
  }
  const struct HoneRuntime runtime = {RunParts, threads};
  const struct Guarded packed = Allocate(packed_bytes(), 0), workspace = Allocate(workspace_bytes(threads), 0);
  const int32_t prepacked = prepack(pointers, Data(&packed));
  const int32_t code = run(pointers, Data(&packed), Data(&workspace), &runtime);
  const int own_intact = IsIntact(&packed) && IsIntact(&workspace);
  free(packed.memory);
  free(workspace.memory);
  if (prepacked != 0 || code != 0) {
    snprintf(message, sizeof message, "return codes %d and %d", (int)prepacked, (int)code);
    return message;
  }
  if (!own_intact) return "bytes outside the kernel's own memory were written";
  for (int i = 0; i < count; ++i) {
    if (IsIntact(&buffers[i])) continue;
    snprintf(message, sizeof message, "bytes outside buffer %d were written", i);
    return message;
  }
  return "";
}

static const char* LoadAndRun(const void* object, int64_t bytes, const struct Guarded* buffers, int count,
                              int32_t threads) {
  static char message[512];
  const int file = memfd_create("kernel", 0);
  if (file < 0 || write(file, object, (size_t)bytes) != (ssize_t)bytes) return "cannot write a file in memory";
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char* problem = message;
  if (library != NULL) {
    problem = Run(library, buffers, count, threads);
    dlclose(library);
  } else {
    snprintf(message, sizeof message, "dlopen: %s", dlerror());
  }
  close(file);
  return problem;
}

int main(void) {
  int64_t object_bytes = 0;
  while (Read(&object_bytes, sizeof object_bytes)) {
    void* const object = malloc((size_t)object_bytes);
    Need(object != NULL && Read(object, object_bytes));
    int32_t count = 0, threads = 0;
    struct Guarded buffers[kMaxBuffers];
    Need(Read(&count, sizeof count) && count <= kMaxBuffers && Read(&threads, sizeof threads));
    for (int32_t i = 0; i < count; ++i) {
      int64_t bytes = 0, offset = 0;
      Need(Read(&bytes, sizeof bytes) && Read(&offset, sizeof offset));
      buffers[i] = Allocate(bytes, offset);
    }
    for (int32_t i = 0; i < count; ++i) Need(Read(Data(&buffers[i]), buffers[i].bytes));
    const char* const problem = LoadAndRun(object, object_bytes, buffers, count, threads);
    const int64_t length = (int64_t)strlen(problem);
    Write(&length, sizeof length);
    Write(problem, length);
    for (int32_t i = 0; i < count; ++i) {
      if (length == 0) Write(Data(&buffers[i]), buffers[i].bytes);
      free(buffers[i].memory);
    }
    free(object);
    fflush(stdout);
  }
  return 0;
}
