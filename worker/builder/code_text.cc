#include "worker/builder/code_text.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"
#include "worker/builder/source.h"
#include "worker/builder/toolchain.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::builder {

absl::StatusOr<std::string> CodeText(absl::string_view trace, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(trace));
  HONE_RETURN_IF_ERROR(
      schedule::CheckDecided(file.parsed, "code is generated for a single candidate"));
  const std::vector<int64_t> decisions = file.parsed.decisions;
  HONE_ASSIGN_OR_RETURN(const Source source, ReplayFile(std::move(file), decisions));
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(source.program, target));
  HONE_ASSIGN_OR_RETURN(codegen::Code code,
                        codegen::Generate(lowered, target, {.keep_source = true}));
  return absl::StrCat(code.source, RemarksOn(code, target));
}

absl::StatusOr<target::Target> ReadTarget(absl::string_view text) {
  if (absl::StartsWith(text, "target ")) return target::Target::FromText(text);
  absl::StatusOr<target::Target> named = target::TargetByName(text);
  if (named.ok()) return named;
  return absl::InvalidArgumentError(named.status().message());
}

}  // namespace hone::builder
