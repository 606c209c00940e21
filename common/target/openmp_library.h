#ifndef HONE_COMMON_TARGET_OPENMP_LIBRARY_H_
#define HONE_COMMON_TARGET_OPENMP_LIBRARY_H_

#include <stdbool.h>

#include "common/target/hone_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// A runtime that uses the threads of libgomp. In C, because exported networks contain this code.

// Loads the library, once. Returns false if it is not installed. It stays loaded, because its
// threads wait inside it.
bool hone_openmp_load(void);

// The number of threads that OpenMP uses by default (OMP_NUM_THREADS). REQUIRES hone_openmp_load().
int32_t hone_openmp_threads(void);

// A runtime with at least one thread. REQUIRES hone_openmp_load(), or `threads` is 1.
HoneRuntime hone_openmp_runtime(int32_t threads);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // HONE_COMMON_TARGET_OPENMP_LIBRARY_H_
