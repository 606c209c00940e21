#ifndef HONE_CLIENT_CLI_TUNE_APPLY_TRACE_H_
#define HONE_CLIENT_CLI_TUNE_APPLY_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::cli {

// A handwritten schedule and the program that it gives.
struct AppliedTrace {
  std::shared_ptr<const ir::Workload> workload;
  schedule::Trace trace;
  std::vector<int64_t> decisions;  // given or drawn
  ir::Program program;             // after all instructions
  std::vector<int> lines;          // line numbers of the instructions in the file

  // The trace file with every decision.
  std::string Text() const;
};

// Reads and applies a trace file. Open decisions are drawn from `seed`; they are drawn again if a
// primitive refuses them, up to a limit. InvalidArgument: the text is malformed, or a primitive
// refuses its arguments; the message begins with path:line:column, and for a primitive contains the
// program with the loop marked.
absl::StatusOr<AppliedTrace> ApplyTrace(const std::string& path, const std::string& text,
                                        uint64_t seed);

// The same for a trace whose decisions are all given. InvalidArgument: some are open, or as above.
absl::StatusOr<AppliedTrace> ApplyDecidedTrace(const std::string& path, const std::string& text);

// The program after one instruction.
struct TraceStep {
  int line = 0;             // line number in the file; 0: before the first instruction
  std::string instruction;  // with its decisions
  std::string program;
};
// The unscheduled program, then the one after each instruction.
absl::StatusOr<std::vector<TraceStep>> StepsOf(const AppliedTrace& applied);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_APPLY_TRACE_H_
