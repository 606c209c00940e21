#ifndef HONE_WORKER_COMPILE_C_GPU_SOURCE_H_
#define HONE_WORKER_COMPILE_C_GPU_SOURCE_H_

#include "absl/strings/string_view.h"
#include "worker/compile/backend.h"
#include "worker/compile/c/dialect.h"

namespace hone::codegen {

// Generates source text for GPUs in a dialect, and the description of how to launch its kernels.
// Errors as in Backend::Generate; also InvalidArgument if a kernel needs more threads or shared
// memory than the target allows, or f64 on a target without it.
absl::StatusOr<Code> PrintGpuSource(const lower::LoweredProgram& program,
                                    const target::Target& target, const CDialect& dialect,
                                    absl::string_view format);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_GPU_SOURCE_H_
