#ifndef HONE_WORKER_BUILDER_BUILD_H_
#define HONE_WORKER_BUILDER_BUILD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/record/record.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "worker/compile/llvm/modelled_cost.h"

namespace hone::builder {

// A program to build and its origin.
struct Source {
  std::shared_ptr<const ir::Workload> workload;
  ir::Program program;
  std::string trace;  // text form with decisions
};

// Replays a trace file with these decisions. InvalidArgument: a primitive refuses, with any status:
// the trace is wrong.
absl::StatusOr<Source> ReplayFile(schedule::TraceFile file, absl::Span<const int64_t> decisions);

// Returns the code that Build would make of a schedule as text: assembly, or the source for targets
// that compile it themselves. `trace` is the text of a trace file with decisions. InvalidArgument:
// the trace is malformed, has open decisions or does not replay, or the code would exceed a limit.
// Unimplemented: the target has no code for the program. Internal: a bug of the code generator.
absl::StatusOr<std::string> CodeText(absl::string_view trace, const target::Target& target);

// Models what the code of a schedule costs on a CPU that need not be at hand
// (worker/compile/llvm/modelled_cost.h). Errors are those of CodeText; InvalidArgument: the target
// is a GPU or a CPU without a model, too.
absl::StatusOr<codegen::ModelledCost> CostOfTrace(absl::string_view trace,
                                                  const target::Target& target);

// Parses a target: a preset's name, "native" (target::TargetByName), or a target's text form.
// InvalidArgument: an unknown name (the message lists the names), or a malformed text.
absl::StatusOr<target::Target> ReadTarget(absl::string_view text);

// Builds one candidate: parses the workload and the design space, replays the decisions, lowers the
// program, generates machine code, links it, and writes the artifact as <artifact_dir>/<digest>. If
// `reference` is set, builds the workload's reference kernel instead and ignores space and
// decisions; if the target is a GPU, builds it for this machine's CPU.
//
// Reports every failure as an outcome: ok; invalid (a text does not parse, the space belongs to
// another workload, a decision or primitive is refused, the program exceeds a limit, or the target
// cannot run it); compile_error (code generation or the linker fails); device_lost (the artifact
// cannot be written). One call at a time. The caller must handle compiles that hang or crash.
record::BuildResponse Build(const record::BuildRequest& request);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_BUILD_H_
