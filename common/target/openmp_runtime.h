#ifndef HONE_COMMON_TARGET_OPENMP_RUNTIME_H_
#define HONE_COMMON_TARGET_OPENMP_RUNTIME_H_

#include <cstdint>

#include "common/target/kernel_abi.h"

namespace hone::target {

// Loads OpenMP's library, libgomp, once. Returns false if it is not installed. It stays loaded,
// because its threads wait inside it.
bool LoadOpenMp();

// The number of threads that OpenMP uses by default (OMP_NUM_THREADS). REQUIRES LoadOpenMp().
int32_t OpenMpThreads();

// A runtime with the threads of OpenMP. REQUIRES LoadOpenMp(). It uses the standard library alone,
// because it is a part of libhone_lookup (client/lookup).
HoneRuntime OpenMpRuntime(int32_t threads);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_OPENMP_RUNTIME_H_
