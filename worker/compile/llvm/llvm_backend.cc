#include "worker/compile/llvm/llvm_backend.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/compile/llvm/compile.h"

namespace hone::codegen {
namespace {

class Llvm final : public Backend {
 public:
  absl::string_view name() const override { return "llvm"; }
  bool Serves(const target::Target& target) const override {
    return target.kind == target::Kind::kCpu;
  }
  absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target& target,
                                const CodeOptions& options) const override {
    HONE_ASSIGN_OR_RETURN(CompiledObject compiled,
                          Compile(program, target, {.keep_assembly = options.keep_source}));
    return Code{kElfObject, std::move(compiled.object), std::move(compiled.assembly)};
  }
};

}  // namespace

const Backend* LlvmBackend() {
  static const auto* const backend = new Llvm;
  return backend;
}

}  // namespace hone::codegen
