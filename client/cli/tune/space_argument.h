#ifndef HONE_CLIENT_CLI_TUNE_SPACE_ARGUMENT_H_
#define HONE_CLIENT_CLI_TUNE_SPACE_ARGUMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/workload_argument.h"

namespace hone::cli {

// Reads the value of --space. Returns the name of a space maker ("" for "rules"; the server checks
// the name), or for "trace:FILE" the text of the file. InvalidArgument: the value is neither, the
// file cannot be read, or its text is malformed (the message begins with file:line:column).
absl::StatusOr<std::string> ReadSpaceArgument(const std::string& argument);

// The workload of a trace file. REQUIRES: `text` was returned by ReadSpaceArgument.
absl::StatusOr<WorkloadArgument> WorkloadOfTrace(const std::string& title, const std::string& text);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_SPACE_ARGUMENT_H_
