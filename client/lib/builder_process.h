#ifndef HONE_CLIENT_LIB_BUILDER_PROCESS_H_
#define HONE_CLIENT_LIB_BUILDER_PROCESS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::client {

// Runs `hone-builder WORDS…` to its end, with this standard input, and returns its standard output.
// `program_dir` is the folder of Hone's programs; "": that of this program.
//
// FailedPrecondition: hone-builder is not there. InvalidArgument: it refuses the words or the
// input. Aborted: it failed or crashed; the message is its own. Other errors: it cannot be started.
absl::StatusOr<std::string> RunBuilder(const std::vector<std::string>& words,
                                       const std::string& input,
                                       const std::string& program_dir = "");

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_BUILDER_PROCESS_H_
