#include "worker/compile/c/gpu_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/f64.h"
#include "worker/compile/c/c_printer.h"
#include "worker/compile/lower/intrinsics.h"

namespace hone::codegen {
namespace {

absl::Status CheckLimits(const target::GpuLaunch& launch, const target::GpuLimits& limits) {
  const auto refuse = [&](absl::string_view what, int64_t used, int64_t allowed) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.kernel, " uses ", used, " ",
                                                   what, ", the device allows ", allowed));
  };
  if (launch.Threads() > limits.max_threads) {
    return refuse("threads in a block", launch.Threads(), limits.max_threads);
  }
  if (launch.shared_bytes > limits.shared_bytes) {
    return refuse("bytes of shared memory", launch.shared_bytes, limits.shared_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Code> PrintGpuSource(const lower::LoweredProgram& program,
                                    const target::Target& target, const CDialect& dialect,
                                    absl::string_view format) {
  HONE_RETURN_IF_ERROR(lower::CheckIntrinsics(program, target));
  HONE_ASSIGN_OR_RETURN(CModule printed, PrintC(program, dialect));
  if (printed.uses_f64 && !target::ComputesF64(target)) {
    return absl::InvalidArgumentError(absl::StrCat("the code computes in f64, which ", target.Key(),
                                                   " does not have (feature fp64); use f32"));
  }
  target::GpuModule module{.kind = target.kind,
                           .arguments = program.arguments,
                           .packed_bytes = program.packed_bytes,
                           .workspace_bytes = program.workspace_bytes};
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const lower::LoweredKernel& kernel = program.kernels[k];
    module.launches.push_back({.kernel = printed.functions[k],
                               .prepack = kernel.prepack,
                               .grid = kernel.grid,
                               .block = kernel.block,
                               .shared_bytes = kernel.shared_bytes});
    HONE_RETURN_IF_ERROR(CheckLimits(module.launches.back(), target.gpu));
  }
  return Code{std::string(format), printed.text, printed.text, std::move(module)};
}

}  // namespace hone::codegen
