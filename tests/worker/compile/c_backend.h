#ifndef HONE_TESTS_WORKER_COMPILE_C_BACKEND_H_
#define HONE_TESTS_WORKER_COMPILE_C_BACKEND_H_

#include <string>

#include "worker/compile/backend.h"

namespace hone::codegen {

// A small back end for CPUs: the C printer with a dialect for the system's compiler, and one
// thread. It runs what other dialects only print, and shows that nothing outside the back ends
// depends on LLVM.
const Backend* CBackend();
inline constexpr char kCSource[] = "c source";

// Compiles the code of CBackend with the system's compiler, cc. Returns a shared object.
absl::StatusOr<std::string> CompileC(const Code& code);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_C_BACKEND_H_
