#ifndef HONE_CLIENT_CONNECTION_PROGRAM_CALL_H_
#define HONE_CLIENT_CONNECTION_PROGRAM_CALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::client {

// One run of another program of Hone.
struct ProgramCall {
  std::string program;  // "hone-builder"
  std::string purpose;  // for the error if it is missing: "generates the code"
  std::vector<std::string> words = {};
  std::string input = "";        // its standard input
  std::string program_dir = "";  // the folder of Hone's programs; "": that of this program
};

// Runs the program to its end and returns its standard output. Starts no thread, and may be called
// before PrivateServer::StartOrJoin.
//
// FailedPrecondition: the program is not there. InvalidArgument: it refuses the words or the input.
// Aborted: it failed or crashed; the message is its own. Other errors: it cannot be started.
absl::StatusOr<std::string> CallProgram(const ProgramCall& call);

// The same for `hone-builder WORDS…`, which generates code.
absl::StatusOr<std::string> RunBuilder(const std::vector<std::string>& words,
                                       const std::string& input,
                                       const std::string& program_dir = "");

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_PROGRAM_CALL_H_
