#ifndef HONE_TESTS_WORKER_RUNNER_CUDA_MODULES_H_
#define HONE_TESTS_WORKER_RUNNER_CUDA_MODULES_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"

// Handwritten modules for the driver of tests/fakes/cuda/libraries.
namespace hone::runner {

// Computes kMatmulWorkload of opencl_modules.h with tiles in shared memory. `extra` is a statement
// that each thread runs before its last one, which writes C[i * 48 + j] = sum.
target::GpuModule CudaMatmulModule(absl::string_view extra = "");

// The same computation as DenseModule. The code is the source.
target::GpuModule CudaDenseSource();
// The same, compiled for the fake driver.
target::GpuModule CudaDenseModule();

// A context of the fake driver's first device.
absl::StatusOr<std::unique_ptr<target::GpuContext>> FakeCudaContext();

}  // namespace hone::runner

#endif  // HONE_TESTS_WORKER_RUNNER_CUDA_MODULES_H_
