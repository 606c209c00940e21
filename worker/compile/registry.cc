#include "absl/strings/str_cat.h"
#include "worker/compile/backend.h"

namespace hone::codegen {

absl::Span<const Backend* const> Backends() {
  // One line per back end.
  static const Backend* const backends[] = {
      LlvmBackend(),
      OpenClBackend(),
      CudaBackend(),
  };
  return backends;
}

absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target& target,
                              const CodeOptions& options) {
  for (const Backend* const backend : Backends()) {
    if (backend->Serves(target)) return backend->Generate(program, target, options);
  }
  return absl::UnimplementedError(absl::StrCat("no back end generates code for ", target.Key()));
}

}  // namespace hone::codegen
