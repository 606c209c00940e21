#ifndef HONE_TESTS_ORACLES_PROGRAM_PARSER_H_
#define HONE_TESTS_ORACLES_PROGRAM_PARSER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::ir {

// Limits on a program's text. Exceeding one is an error whose message states it.
inline constexpr int kMaxProgramTextBytes = 4 << 20;
inline constexpr int kMaxProgramBuffers = 1024;
inline constexpr int kMaxProgramNodes = 1 << 16;
inline constexpr int kMaxProgramDepth = 256;
inline constexpr int kMaxProgramWords = 1 << 17;
// Largest value of an index over loops, and largest extent of a loop.
inline constexpr int64_t kMaxProgramIndex = int64_t{1} << 60;

// Parses the output of Program::ToText, for any state of the schedule. The result prints the same
// text and has the same StructuralDigest, but its extents are constants: the text does not contain
// their derivations. A '>' mark is ignored; '#' starts a comment. `workload` is the workload that
// the program computes and provides its inputs and outputs. InvalidArgument: "line:column: what is
// wrong", with the line and a mark (MarkText()), for syntax errors, names that are not in scope,
// wrong numbers of indices, mismatched dtypes and exceeded limits. Does not check that the program
// computes the workload or that indices stay within their buffers.
absl::StatusOr<Program> ParseProgram(std::shared_ptr<const Workload> workload,
                                     absl::string_view text);

}  // namespace hone::ir

#endif  // HONE_TESTS_ORACLES_PROGRAM_PARSER_H_
