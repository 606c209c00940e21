#ifndef HONE_COMMON_SCHEDULE_TRACE_H_
#define HONE_COMMON_SCHEDULE_TRACE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/digest.h"
#include "common/ir/workload.h"
#include "common/schedule/primitive.h"

namespace hone::schedule {

// An operand of an instruction: a register (block, loop or number), a literal number, or a string.
struct Operand {
  enum class Kind : uint8_t { kBlock, kLoop, kInt, kNumber, kString };
  Kind kind = Kind::kNumber;
  int32_t reg = -1;
  int64_t number = 0;
  std::string text;
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Attribute {
  std::string name;
  std::vector<int64_t> numbers;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

struct Instruction {
  const Primitive* primitive = nullptr;
  std::vector<Operand> operands;
  std::vector<Attribute> attributes;
  std::vector<Operand> results;  // registers
  int decision_begin = -1;       // of a sampling: position in the decision vector
  int decision_count = 0;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// The persistent form of a schedule: instructions over registers. With open decisions it is a
// design space; with a decision vector it is a schedule. The text form has one instruction per
// line; docs/language.md describes it:
//
//   b0 = block("C")
//   l0, l1, l2 = loops(b0)
//   x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=64)            open
//   x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=64) = [16, 64]  decided
//   l3, l4 = split(l0, x0, x1)
//   parallel(l3)
struct Trace {
  std::vector<Instruction> instructions;
  int blocks = 0, loops = 0, ints = 0;  // number of registers of each kind
  int decisions = 0;                    // length of the decision vector

  // Returns an unused register for a result of the given letter (Primitive::results).
  Operand NewRegister(char letter);

  // Prints open decisions if `decided` is empty. REQUIRES decided.size() to be 0 or `decisions`.
  std::string ToText(absl::Span<const int64_t> decided = {}) const;
};

struct ParsedTrace {
  Trace trace;
  std::vector<int64_t> decisions;  // empty if open
};

// Parses the instructions. `first_line` is the number of the text's first line, for messages.
// InvalidArgument: "line:column: what" with the line and a mark (common/ir/token_reader.h), also if
// only some decisions are given or a register is used before it is set.
absl::StatusOr<ParsedTrace> ParseTrace(absl::string_view text, int first_line = 1);

// InvalidArgument: decisions are open; `why` completes the
// message: "code is generated for a single candidate".
absl::Status CheckDecided(const ParsedTrace& parsed, absl::string_view why);

// A trace file or the text of a design space: the workload, this line, the instructions.
inline constexpr absl::string_view kTraceHeader = "trace 1";
// Whether a line is such a header, of any version. A stage may also be named "trace".
bool IsTraceHeader(absl::string_view line);
struct TraceFile {
  ir::Workload workload;
  ParsedTrace parsed;
};
absl::StatusOr<TraceFile> ParseTraceFile(absl::string_view text);
std::string TraceFileText(const ir::Workload& workload, const Trace& trace,
                          absl::Span<const int64_t> decided = {});

// Builds a trace in C++, e.g. for the rules of server/tuner/space. Names are those of the registry.
// Errors are bugs and fail a CHECK.
class TraceBuilder {
 public:
  // Adds an instruction with any operands. Returns the result registers.
  std::vector<Operand> Add(absl::string_view primitive, std::vector<Operand> operands,
                           std::vector<Attribute> attributes = {}, int results = -1);
  const Trace& trace() const { return trace_; }
  Trace Build() && { return std::move(trace_); }

 private:
  Trace trace_;
};

inline Operand Number(int64_t number) { return {.kind = Operand::Kind::kNumber, .number = number}; }
inline Operand Text(std::string text) {
  return {.kind = Operand::Kind::kString, .text = std::move(text)};
}

// Returns the number of decisions of a sampling instruction; 0 for other instructions.
// InvalidArgument: invalid attributes.
absl::StatusOr<int> DecisionCount(const Instruction& instruction);

// A rewrite that a trace begins with, such as rewrite("winograd", "Y", 4).
struct UsedRewrite {
  std::string name;
  std::string stage;
  std::vector<int64_t> numbers;
  double tolerance = 0;  // the smallest job tolerance that allows it (Rewrite::tolerance)
};

// Returns the rewrites of a trace with these decisions, in order. Errors are those of
// ApplyRewriteTo. InvalidArgument: the trace takes another number of decisions.
absl::StatusOr<std::vector<UsedRewrite>> RewritesOf(const ir::Workload& workload,
                                                    const Trace& trace,
                                                    absl::Span<const int64_t> decisions);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_TRACE_H_
