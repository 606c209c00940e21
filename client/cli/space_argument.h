#ifndef HONE_CLIENT_CLI_SPACE_ARGUMENT_H_
#define HONE_CLIENT_CLI_SPACE_ARGUMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/workload_argument.h"

namespace hone::cli {

// Reads the name of a maker of spaces ("" is returned for "rules"; the server refuses names that
// there are not) or "trace:FILE" (the file's text). InvalidArgument: it is neither, the file cannot
// be read, or its text is no trace file (the message begins with file:line:column).
absl::StatusOr<std::string> ReadSpaceArgument(const std::string& argument);

// The workload that a trace file begins with. REQUIRES `text` as ReadSpaceArgument gives it.
absl::StatusOr<WorkloadArgument> WorkloadOfTrace(const std::string& title, const std::string& text);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SPACE_ARGUMENT_H_
