#ifndef HONE_TESTS_WORKER_CODEGEN_C_BACKEND_H_
#define HONE_TESTS_WORKER_CODEGEN_C_BACKEND_H_

#include <string>

#include "worker/codegen/backend.h"

namespace hone::codegen {

// A small back end that prints C for one thread. It shows what a back end needs, and that nothing
// outside it depends on LLVM. It has no floats shorter than f32.
const Backend* CBackend();
inline constexpr char kCSource[] = "c source";

// Compiles the code of CBackend with the system's compiler, cc. Returns a shared object.
absl::StatusOr<std::string> CompileC(const Code& code);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_CODEGEN_C_BACKEND_H_
