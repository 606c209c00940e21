#ifndef HONE_COMMON_TARGET_THREAD_POOL_H_
#define HONE_COMMON_TARGET_THREAD_POOL_H_

#include "common/target/hone_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// The threads behind Hone's kernels: a pool that is kept between loops. In C with libc only,
// because exported networks contain this code. All functions may be called by any thread.
//
// The threads of a loop claim shares of it. Each begins with the same part of the iterations in
// every loop, which is therefore in its caches, and then takes over what others have not begun. A
// thread without a core delays a loop only by the share that it is computing. Threads that wait
// spin for some microseconds and then sleep, so an idle program uses no processor time.
//
// Several threads may run loops at the same time; the pool's threads help them all. A loop that is
// started inside another one, and the eighth loop at a time, runs on the calling thread alone. A
// child process of fork gets threads of its own when it needs them. Unloading the library that
// contains the pool ends the threads.

// The number of CPUs that this process may keep busy: those of its affinity mask, limited by the
// quotas of its control groups (rounded up).
int32_t hone_usable_cpus(void);

// The least quota of this process's control groups, in CPUs; 0: there is none. `root` replaces / in
// tests.
double hone_cpu_quota(const char* root);

// The number of threads that kernels use by default: OMP_NUM_THREADS if it is set, or else
// hone_usable_cpus().
int32_t hone_threads_default(void);

// A runtime with this many threads, of which one is the calling thread; 0: hone_threads_default().
// The others are started when a loop needs them.
HoneRuntime hone_threads(int32_t threads);

// Starts the threads now. Returns how many threads a loop of a runtime with `threads` has, which is
// less if the system refused some.
int32_t hone_threads_start(int32_t threads);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // HONE_COMMON_TARGET_THREAD_POOL_H_
