#ifndef HONE_TESTS_WORKER_COMPILE_EMULATED_PROGRAM_H_
#define HONE_TESTS_WORKER_COMPILE_EMULATED_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"
#include "tests/fakes/cuda/emulated_module.h"
#include "worker/compile/backend.h"

namespace hone::codegen {

// Printed CUDA programs, compiled for the CPU and run on the fakes of tests/fakes/cuda.
class EmulatedPrograms {
 public:
  // Compiles all codes at once. Errors of BuildEmulatedModules.
  static absl::StatusOr<std::unique_ptr<EmulatedPrograms>> Build(std::vector<Code> codes);

  // Runs all launches of program `number` on inputs in the order of the workload. Outputs and the
  // workspace hold NaN before. Errors of EmulatedModule::Launch; Internal: bytes around a buffer
  // were written.
  absl::StatusOr<std::vector<ir::Scalars>> Run(
      size_t number, const ir::Workload& workload, absl::Span<const ir::Scalars> inputs,
      cuda::EmulatedOrder order = cuda::EmulatedOrder::kForward, uint64_t seed = 1);

  const Code& code(size_t number) const { return codes_[number]; }

 private:
  std::vector<Code> codes_;
  std::unique_ptr<cuda::EmulatedModule> module_;
};

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_EMULATED_PROGRAM_H_
