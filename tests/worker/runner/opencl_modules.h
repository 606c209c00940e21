#ifndef HONE_TESTS_WORKER_RUNNER_OPENCL_MODULES_H_
#define HONE_TESTS_WORKER_RUNNER_OPENCL_MODULES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/target/gpu_module.h"

// Handwritten modules for OpenCL devices.
namespace hone::runner {

// Why tests of OpenCL devices cannot run here; "" if they can.
std::string WhyNoOpenCl();

inline constexpr absl::string_view kMatmulWorkload =
    "workload matmul\n"
    "input A: f32[64, 32]\n"
    "input B: f32[32, 48]\n"
    "output C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n";

// Computes kMatmulWorkload with tiles in shared memory. `extra` is a statement that each thread
// runs before its last one, which writes C[i * 48 + j] = sum.
target::GpuModule MatmulModule(absl::string_view extra = "");

// Computes H = A + 1 in the workspace and then C = H · W with packed W, for A: f32[8, 16] and
// W: f32[16, 32].
target::GpuModule DenseModule();

// Writes an artifact with the module; returns its path in the folder.
std::string WriteModule(const std::string& folder, const target::GpuModule& module);

}  // namespace hone::runner

#endif  // HONE_TESTS_WORKER_RUNNER_OPENCL_MODULES_H_
