#ifndef HONE_WORKER_CODEGEN_C_OPENCL_DIALECT_H_
#define HONE_WORKER_CODEGEN_C_OPENCL_DIALECT_H_

#include "worker/codegen/c/dialect.h"

namespace hone::codegen {

// OpenCL C 1.2. Extensions: cl_khr_fp64 in programs with f64.
const CDialect& OpenClDialect();

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_OPENCL_DIALECT_H_
