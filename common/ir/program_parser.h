#ifndef HONE_COMMON_IR_PROGRAM_PARSER_H_
#define HONE_COMMON_IR_PROGRAM_PARSER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::ir {

// Limits of a program's text; anything larger is refused with the limit in the message.
inline constexpr int kMaxProgramTextBytes = 4 << 20;
inline constexpr int kMaxProgramBuffers = 1024;
inline constexpr int kMaxProgramNodes = 1 << 16;
inline constexpr int kMaxProgramDepth = 256;
inline constexpr int kMaxProgramWords = 1 << 17;
// That an index over loops can reach, and the extent of a loop.
inline constexpr int64_t kMaxProgramIndex = int64_t{1} << 60;

// Reads what Program::ToText prints, whatever the state of the schedule: the result prints the same
// text and has the same StructuralDigest. How extents follow from decisions is not in the text:
// they become constants. A line that is marked with
// '>' reads as one that is not; '#' starts a comment. `workload` is what the program computes: the
// inputs and outputs in the text are its own. InvalidArgument: "line:column: what is wrong", with
// the line and a mark (text_mark.h) – also a name that is not in scope, a wrong number of indices,
// dtypes that do not fit, and what is beyond the limits above. Not checked: that the program
// computes the workload, and that no index leaves its buffer.
absl::StatusOr<Program> ParseProgram(std::shared_ptr<const Workload> workload,
                                     absl::string_view text);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_PROGRAM_PARSER_H_
