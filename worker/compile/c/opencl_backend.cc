#include "worker/compile/c/opencl_backend.h"

#include "worker/compile/c/gpu_source.h"
#include "worker/compile/c/opencl_dialect.h"

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
    return PrintGpuSource(program, target, OpenClDialect(target.HasFeature("fp16")), kOpenClSource);
  }
};

}  // namespace

const Backend* OpenClBackend() {
  static const auto* const backend = new OpenCl;
  return backend;
}

}  // namespace hone::codegen
