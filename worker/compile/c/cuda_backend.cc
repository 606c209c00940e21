#include "worker/compile/c/cuda_backend.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compile/c/cuda_dialect.h"
#include "worker/compile/c/gpu_source.h"

namespace hone::codegen {
namespace {

// The largest grid and block of every NVIDIA GPU.
constexpr std::array<int64_t, 3> kMaxGrid = {(int64_t{1} << 31) - 1, 65535, 65535};
constexpr std::array<int64_t, 3> kMaxBlock = {1024, 1024, 64};

absl::Status CheckExtents(const target::GpuLaunch& launch) {
  constexpr char kAxes[] = "xyz";
  for (size_t d = 0; d < 3; ++d) {
    const auto check = [&](absl::string_view what, int64_t used, int64_t allowed) {
      if (used <= allowed) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.kernel, " uses ", used, " ",
                                                     what, " in ", std::string(1, kAxes[d]),
                                                     ", CUDA allows ", allowed));
    };
    HONE_RETURN_IF_ERROR(check("blocks", launch.grid[d], kMaxGrid[d]));
    HONE_RETURN_IF_ERROR(check("threads", launch.block[d], kMaxBlock[d]));
  }
  return absl::OkStatus();
}

class Cuda final : public Backend {
 public:
  absl::string_view name() const override { return "cuda"; }
  bool Serves(const target::Target& target) const override {
    return target.kind == target::Kind::kCuda;
  }
  absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target& target,
                                const CodeOptions& /*options*/) const override {
    HONE_ASSIGN_OR_RETURN(Code code, PrintGpuSource(program, target, CudaDialect(), kCudaSource));
    for (const target::GpuLaunch& launch : code.module->launches) {
      HONE_RETURN_IF_ERROR(CheckExtents(launch));
    }
    return code;
  }
};

}  // namespace

const Backend* CudaBackend() {
  static const auto* const backend = new Cuda;
  return backend;
}

}  // namespace hone::codegen
