#include "tests/worker/compile/nvrtc_check.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/builder/nvrtc.h"

namespace hone::codegen {

bool HasNvrtc() { return builder::Nvrtc::Loaded().ok(); }

NvrtcResult CompileWithNvrtc(const std::string& text, absl::string_view architecture) {
  const auto compiled = (*builder::Nvrtc::Loaded())->Compile(text, std::string(architecture));
  const auto problem = [&](absl::string_view log) {
    return NvrtcResult{absl::StrCat(text, "\n", architecture, ":\n", log), ""};
  };
  if (!compiled.ok()) return problem(compiled.status().message());
  // The log also lists the registers and the memory of each kernel.
  if (absl::StrContains(compiled->log, "warning")) return problem(compiled->log);
  return {"", compiled->ptx};
}

}  // namespace hone::codegen
