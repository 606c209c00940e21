#ifndef HONE_CLIENT_CLI_WORKLOAD_LIST_H_
#define HONE_CLIENT_CLI_WORKLOAD_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cli/workload_argument.h"

namespace hone::cli {

// Reads the words of one or several workloads. The name of an operator or file begins the next
// workload; a workload may also be one quoted word. Errors as for ReadWorkloadArgument.
absl::StatusOr<std::vector<WorkloadArgument>> ReadWorkloads(absl::Span<const std::string> words);

// Reads a file with one workload on each line, in the words of a command line. Empty lines and
// lines that begin with # are skipped. InvalidArgument: the file cannot be read, has no workload,
// or has a wrong one (the message begins with path:line).
absl::StatusOr<std::vector<WorkloadArgument>> ReadWorkloadList(const std::string& path);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_WORKLOAD_LIST_H_
