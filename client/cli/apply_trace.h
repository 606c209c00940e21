#ifndef HONE_CLIENT_CLI_APPLY_TRACE_H_
#define HONE_CLIENT_CLI_APPLY_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::cli {

// A schedule written by hand, applied.
struct AppliedTrace {
  std::shared_ptr<const ir::Workload> workload;
  schedule::Trace trace;
  std::vector<int64_t> decisions;  // as given, or as drawn
  ir::Program program;             // after all instructions
  std::vector<int> lines;          // of the file, one per instruction

  // The trace file with every decision.
  std::string Text() const;
};

// Reads and applies a trace file; open decisions are drawn from `seed`, again and again until every
// primitive takes them. InvalidArgument: the text is wrong, or a primitive refuses; the message
// begins with path:line:column, and a refusal prints the program with the loop marked.
absl::StatusOr<AppliedTrace> ApplyTrace(const std::string& path, const std::string& text,
                                        uint64_t seed);

// A state of the program on the way.
struct TraceStep {
  int line = 0;             // of the file; 0: before the first instruction
  std::string instruction;  // with its decisions
  std::string program;
};
// The unscheduled program, then the one after each instruction.
absl::StatusOr<std::vector<TraceStep>> StepsOf(const AppliedTrace& applied);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_APPLY_TRACE_H_
