#ifndef HONE_CLIENT_CLI_WORKLOAD_ARGUMENT_H_
#define HONE_CLIENT_CLI_WORKLOAD_ARGUMENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"

namespace hone::cli {

// A workload named on the command line.
struct WorkloadArgument {
  ir::Workload workload;
  std::string text;   // text form, which is sent to the server
  std::string title;  // the words as the user typed them, for headings
  std::string words;  // the words quoted for a shell, for commands in messages
  // Of one of several sizes with weights: its part of the budget of all, times their number.
  double budget_factor = 1;
};

// Reads "OP key=value…", also if it is quoted as one word, or "FILE.hone" (a workload in text form;
// "-" reads standard input).
// InvalidArgument: there are no words, the operator is unknown (the message suggests the nearest
// one), a key or shape is wrong, the file cannot be read, or its text is malformed (the message
// begins with file:line:column), or it is a list of workloads or a network.
absl::StatusOr<WorkloadArgument> ReadWorkloadArgument(absl::Span<const std::string> words);

// Does the same for a file that has already been read.
absl::StatusOr<WorkloadArgument> ParseWorkloadArgument(const std::string& path,
                                                       const std::string& text);

// Whether a text is a trace file: it has the line between a workload and its instructions
// (schedule::IsTraceHeader).
bool IsTrace(absl::string_view text);

// Whether the words name a file rather than an operator.
bool NamesFile(absl::Span<const std::string> words);
// Whether the words name a network: one word that ends with ".onnx".
bool NamesNetwork(absl::Span<const std::string> words);

// Returns the text of a file, or of standard input for "-", without a byte order mark.
// InvalidArgument: the file cannot be read, is not a text file, or is larger than 64 MiB, which is
// more than any workload or trace needs.
absl::StatusOr<std::string> ReadTextArgument(const std::string& path);

// Reads the words of one or several workloads. The name of an operator or file begins the next
// workload; a workload may also be one quoted word. An operator may have lists or ranges of sizes
// (size_list.h), "matmul m=1,4,8 n=64 k=64", which stand for a workload of each; the weights of
// several keys are multiplied. Errors as for ReadWorkloadArgument.
absl::StatusOr<std::vector<WorkloadArgument>> ReadWorkloads(absl::Span<const std::string> words);

// An operator for several sizes of one key.
struct OperatorSizes {
  std::string key;
  std::vector<int64_t> values;     // ascending
  std::vector<std::string> words;  // of the operator
  size_t place = 0;                // in the words, of the key

  // The words for one value.
  std::vector<std::string> WordsFor(int64_t value) const;
};

// Returns the sizes if the words name one operator, and one of its keys has several. Errors as for
// ReadWorkloads.
absl::StatusOr<std::optional<OperatorSizes>> ReadOperatorSizes(absl::Span<const std::string> words);

// Reads a file with one workload on each line, in the words of a command line. Empty lines and
// lines that begin with # are skipped. InvalidArgument: the file cannot be read, has no workload,
// or has a wrong one (the message begins with path:line).
absl::StatusOr<std::vector<WorkloadArgument>> ReadWorkloadList(const std::string& path);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_WORKLOAD_ARGUMENT_H_
