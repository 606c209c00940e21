#include "tests/worker/compile/run_trace.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/worker/compile/compiled_program.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {

absl::StatusOr<ir::Program> ReplayText(absl::string_view text) {
  HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(text));
  return schedule::Replay(std::make_shared<const ir::Workload>(file.workload), file.parsed.trace,
                          file.parsed.decisions);
}

std::string WithVectors(absl::string_view workload, const std::vector<std::string>& blocks,
                        int lanes) {
  std::string text = absl::StrCat(workload, "trace 1\n");
  for (size_t b = 0; b < blocks.size() && lanes > 1; ++b) {
    absl::StrAppend(&text, "b", b, " = block(\"", blocks[b], "\")\nl", 3 * b, " = loops(b", b,
                    ")\nl", 3 * b + 1, ", l", 3 * b + 2, " = split(l", 3 * b, ", 0, ", lanes,
                    ")\nvectorize(l", 3 * b + 2, ")\n");
  }
  return text;
}

absl::StatusOr<std::vector<ir::Values>> RunTrace(const target::Target& target,
                                                 absl::string_view text,
                                                 absl::Span<const ir::Values> inputs) {
  HONE_ASSIGN_OR_RETURN(const ir::Program program, ReplayText(text));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<CompiledProgram> compiled,
                        CompiledProgram::Load(program, target));
  return compiled->Run(inputs);
}

absl::StatusOr<std::string> AssemblyOf(const target::Target& target, absl::string_view text) {
  HONE_ASSIGN_OR_RETURN(const ir::Program program, ReplayText(text));
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
  HONE_ASSIGN_OR_RETURN(const Code code, Generate(lowered, target, {.keep_source = true}));
  return code.source;
}

target::Target Preset(absl::string_view name) {
  const auto target = target::TargetByName(name);
  return target.ok() ? *target : target::Target{};
}

std::vector<target::Target> RunnableTargets() {
  std::vector<target::Target> targets;
  const target::Target host = target::DetectHost();
  for (const absl::string_view name : {"x86-avx2", "x86-avx512"}) {
    const target::Target target = Preset(name);
    bool runs = target.arch == host.arch;
    for (const std::string& feature : target.features) runs &= host.HasFeature(feature);
    if (runs) targets.push_back(target);
  }
  return targets;
}

}  // namespace hone::codegen
