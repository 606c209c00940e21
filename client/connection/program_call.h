#ifndef HONE_CLIENT_CONNECTION_PROGRAM_CALL_H_
#define HONE_CLIENT_CONNECTION_PROGRAM_CALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/artifact.h"
#include "common/target/device_list.h"

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

// Asks `hone-runner --list-devices`: only that process loads the drivers of devices, because they
// may start threads, hang or crash. Errors as for CallProgram; Aborted also if the answer cannot be
// read.
absl::StatusOr<target::DeviceList> ListDevices(const std::string& program_dir = "");

// Returns the code of a schedule in readable form: assembly, or source for targets that compile it
// themselves. Runs `hone-builder code`. `trace` is the text of a trace file with decisions, and
// `target` the text form of a target; the device is not needed. `program_dir` is the folder of
// Hone's programs; "": that of this program. FailedPrecondition: hone-builder is not there.
// InvalidArgument: the trace or the target is wrong, or the code would exceed a limit. Aborted: the
// code cannot be generated. Other errors: hone-builder cannot be started.
absl::StatusOr<std::string> KernelCode(const std::string& trace, const std::string& target,
                                       const std::string& program_dir = "");

struct BuiltKernel {
  record::Artifact artifact;
  std::string digest;  // as in MeasureResult::artifact_digest
};

// Builds the kernel of such a schedule as a worker would, but neither runs nor checks it. Errors
// are those of KernelCode.
absl::StatusOr<BuiltKernel> BuildKernel(const std::string& trace, const std::string& target,
                                        const std::string& program_dir = "");

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_PROGRAM_CALL_H_
