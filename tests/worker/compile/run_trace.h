#ifndef HONE_TESTS_WORKER_COMPILE_RUN_TRACE_H_
#define HONE_TESTS_WORKER_COMPILE_RUN_TRACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/interpreter.h"
#include "common/ir/program.h"
#include "common/target/target.h"

namespace hone::codegen {

// Replays the text of a trace file.
absl::StatusOr<ir::Program> ReplayText(absl::string_view text);

// Returns a workload with a schedule that vectorizes each block's last loop by `lanes` (1: no
// vectors).
std::string WithVectors(absl::string_view workload, const std::vector<std::string>& blocks,
                        int lanes);

// Compiles the program of a trace file and runs it on this machine.
absl::StatusOr<std::vector<ir::Values>> RunTrace(const target::Target& target,
                                                 absl::string_view text,
                                                 absl::Span<const ir::Values> inputs);

// Returns the assembly of a trace file's program for any target.
absl::StatusOr<std::string> AssemblyOf(const target::Target& target, absl::string_view text);

target::Target Preset(absl::string_view name);
// Returns the presets whose code this machine can run; at least x86-avx2.
std::vector<target::Target> RunnableTargets();

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_RUN_TRACE_H_
