#include "common/target/openmp_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

// The functions that GCC's compiled code calls; LLVM's runtime has them, too.
static struct {
  void (*parallel)(void (*task)(void*), void* data, unsigned threads, unsigned flags);
  int (*thread_num)(void);
  int (*num_threads)(void);
  int (*max_threads)(void);
} openmp;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void Load(void) {
  void* const handle = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NODELETE);
  if (handle == NULL) return;
  *(void**)&openmp.parallel = dlsym(handle, "GOMP_parallel");
  *(void**)&openmp.thread_num = dlsym(handle, "omp_get_thread_num");
  *(void**)&openmp.num_threads = dlsym(handle, "omp_get_num_threads");
  *(void**)&openmp.max_threads = dlsym(handle, "omp_get_max_threads");
  loaded = openmp.parallel != NULL && openmp.thread_num != NULL && openmp.num_threads != NULL &&
           openmp.max_threads != NULL;
}

struct Loop {
  int64_t extent;
  int64_t chunk;
  void (*body)(void* context, int64_t begin, int64_t end, int64_t thread);
  void* context;
  // In a separate cache line, because every thread changes it.
  _Alignas(64) _Atomic int64_t next;
};

// Runs on every thread.
static void Run(void* data) {
  struct Loop* const loop = data;
  const int64_t thread = openmp.thread_num();
  if (loop->chunk == 0) {
    const int64_t threads = openmp.num_threads();
    loop->body(loop->context, thread * loop->extent / threads,
               (thread + 1) * loop->extent / threads, thread);
    return;
  }
  for (;;) {
    const int64_t begin = atomic_fetch_add_explicit(&loop->next, loop->chunk, memory_order_relaxed);
    if (begin >= loop->extent) return;
    const int64_t end = begin + loop->chunk < loop->extent ? begin + loop->chunk : loop->extent;
    loop->body(loop->context, begin, end, thread);
  }
}

static void ParallelFor(const HoneRuntime* runtime, int64_t extent, int64_t chunk, int32_t threads,
                        void (*body)(void* context, int64_t begin, int64_t end, int64_t thread),
                        void* context) {
  (void)runtime;
  if (!loaded) {  // a runtime of one thread
    body(context, 0, extent, 0);
    return;
  }
  struct Loop loop = {extent, chunk, body, context, 0};
  openmp.parallel(Run, &loop, (unsigned)threads, 0);
}

bool hone_openmp_load(void) {
  pthread_once(&once, Load);
  return loaded;
}

int32_t hone_openmp_threads(void) { return openmp.max_threads(); }

HoneRuntime hone_openmp_runtime(int32_t threads) {
  const HoneRuntime runtime = {ParallelFor, threads < 1 ? 1 : threads};
  return runtime;
}
