#ifndef HONE_TESTS_FAKES_CUDA_LIBRARIES_COMPILE_HELPER_H_
#define HONE_TESTS_FAKES_CUDA_LIBRARIES_COMPILE_HELPER_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone::fakes {

// Compiles in the root of the source tree, which the emulation needs.
absl::StatusOr<std::string> CompileInSourceTree(const std::string& source);

// Starts a process that compiles for this one until it ends. The emulation needs the host's
// compiler, which the sandbox of hone-builder forbids, so that hone-builder has this process before
// it enters the sandbox: libcuda.so.1 starts it, which is loaded before.
void StartCompileHelper();

// Compiles with that process, or in this one if it has none.
absl::StatusOr<std::string> CompileForFakes(const std::string& source);

}  // namespace hone::fakes

#endif  // HONE_TESTS_FAKES_CUDA_LIBRARIES_COMPILE_HELPER_H_
