#ifndef HONE_CLIENT_CLI_WORKLOAD_ARGUMENT_H_
#define HONE_CLIENT_CLI_WORKLOAD_ARGUMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::cli {

// What a person named on the command line.
struct WorkloadArgument {
  ir::Workload workload;
  std::string text;   // text form, as the protocol carries it
  std::string title;  // the words that were typed, for headings and hints
};

// Reads "OP key=value…" or "FILE.hone" (a workload in text form; "-" reads standard input).
// InvalidArgument: no words, an unknown operator (the message suggests the nearest and names the
// others), a key or shape that does not fit, a file that cannot be read or whose text is wrong (the
// message begins with file:line:column).
absl::StatusOr<WorkloadArgument> ReadWorkloadArgument(absl::Span<const std::string> words);

// The same for the text of a file that was read already.
absl::StatusOr<WorkloadArgument> ParseWorkloadArgument(const std::string& path,
                                                       const std::string& text);

// Whether a text has the line that a trace begins with, behind its workload.
bool IsTrace(absl::string_view text);

// Whether the words name a file rather than an operator.
bool NamesFile(absl::Span<const std::string> words);

// The text of a file, or of standard input for "-", without the byte order mark that it may begin
// with. InvalidArgument: it cannot be read, is no file of text, or larger than any workload or
// trace.
absl::StatusOr<std::string> ReadTextArgument(const std::string& path);

// One line for a person: "matmul(f32[64, 64], f32[64, 64]) -> f32[64, 64]".
std::string DescribeWorkload(const ir::Workload& workload);
// The same for the text form of a workload; its first line when the text cannot be read.
std::string DescribeWorkloadText(const std::string& text);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_WORKLOAD_ARGUMENT_H_
