#include "worker/codegen/c/opencl_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/codegen/c/c_printer.h"
#include "worker/codegen/c/opencl_dialect.h"

namespace hone::codegen {
namespace {

class OpenCl final : public Backend {
 public:
  absl::string_view name() const override { return "opencl"; }
  bool Serves(const target::Target& target) const override {
    return target.kind == target::Kind::kOpenCl;
  }
  absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target& target,
                                const CodeOptions& /*options*/) const override {
    HONE_ASSIGN_OR_RETURN(CModule printed, PrintC(program, OpenClDialect()));
    target::GpuModule module{.kind = target::Kind::kOpenCl,
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
    return Code{kOpenClSource, printed.text, printed.text, std::move(module)};
  }

 private:
  static absl::Status CheckLimits(const target::GpuLaunch& launch,
                                  const target::GpuLimits& limits) {
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
};

}  // namespace

const Backend* OpenClBackend() {
  static const auto* const backend = new OpenCl;
  return backend;
}

}  // namespace hone::codegen
