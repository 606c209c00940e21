#ifndef HONE_COMMON_TARGET_HONE_RUNTIME_H_
#define HONE_COMMON_TARGET_HONE_RUNTIME_H_

#include <stdint.h>

#ifndef HONE_RUNTIME  // exported headers define it, too
#define HONE_RUNTIME

#ifdef __cplusplus
extern "C" {
#endif

// The threads that a kernel may use. The caller of a kernel provides it; thread_pool.h has one.
typedef struct HoneRuntime HoneRuntime;
struct HoneRuntime {
  // Calls body(context, begin, end, thread) for parts that cover [0, extent), each iteration once,
  // and returns when all parts have ended. At most `threads` parts run at the same time, each with
  // a different thread number from 0 to threads − 1. `chunk` is how the kernel was measured: 0:
  // the thread with number t begins at iteration t · extent / threads; otherwise threads fetch
  // parts of `chunk` iterations when they are free. Other parts give the same results.
  void (*parallel_for)(const struct HoneRuntime* runtime, int64_t extent, int64_t chunk,
                       int32_t threads,
                       void (*body)(void* context, int64_t begin, int64_t end, int64_t thread),
                       void* context);
  int32_t threads;  // the number of threads, at least 1
};

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // HONE_RUNTIME

#endif  // HONE_COMMON_TARGET_HONE_RUNTIME_H_
