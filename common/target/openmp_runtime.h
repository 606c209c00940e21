#ifndef HONE_COMMON_TARGET_OPENMP_RUNTIME_H_
#define HONE_COMMON_TARGET_OPENMP_RUNTIME_H_

#include <cstdint>

#include "common/target/hone_runtime.h"
#include "common/target/openmp_library.h"

namespace hone::target {

// C++ names for the functions of openmp_library.h.
inline bool LoadOpenMp() { return hone_openmp_load(); }
inline int32_t OpenMpThreads() { return hone_openmp_threads(); }
inline HoneRuntime OpenMpRuntime(int32_t threads) { return hone_openmp_runtime(threads); }

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_OPENMP_RUNTIME_H_
