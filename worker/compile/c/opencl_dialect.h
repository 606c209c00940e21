#ifndef HONE_WORKER_COMPILE_C_OPENCL_DIALECT_H_
#define HONE_WORKER_COMPILE_C_OPENCL_DIALECT_H_

#include "worker/compile/c/dialect.h"

namespace hone::codegen {

// OpenCL C 1.2. Extensions: cl_khr_fp64 in programs with f64, and those of the functions that a
// program uses. `computes_f16`: the device has cl_khr_fp16 and rounds its results correctly.
const CDialect& OpenClDialect(bool computes_f16 = false);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_OPENCL_DIALECT_H_
