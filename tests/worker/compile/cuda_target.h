#ifndef HONE_TESTS_WORKER_COMPILE_CUDA_TARGET_H_
#define HONE_TESTS_WORKER_COMPILE_CUDA_TARGET_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::codegen {

// A GPU of an architecture, with the limits that programs get without asking for more.
inline target::Target CudaTarget(absl::string_view architecture = "sm_80") {
  target::Target target;
  target.kind = target::Kind::kCuda;
  target.arch = "nvptx64";
  target.triple = "nvptx64-nvidia-cuda";
  target.cpu = std::string(architecture);
  target.cores = 108;
  target.vector_bits = 128;
  target.gpu = {.max_threads = 1024,
                .shared_bytes = 96 << 10,
                .sub_group = 32,
                .registers = 255,
                .unit_threads = 2048,
                .unit_shared_bytes = 164 << 10,
                .unit_registers = 65536};
  return target;
}

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_CUDA_TARGET_H_
