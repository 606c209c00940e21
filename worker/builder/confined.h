#ifndef HONE_WORKER_BUILDER_CONFINED_H_
#define HONE_WORKER_BUILDER_CONFINED_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "worker/sandbox/sandbox.h"

namespace hone::builder {

// Confines this process, which compiles what clients have written, for good (worker/sandbox). It
// can take the lock (none if the path is empty), and load NVRTC from the folders of the libraries
// that exist now. Errors are those of EnterSandbox, and of making the files of the lock.
absl::Status Confine(const std::string& lock_path, sandbox::SandboxOptions sandbox);

// Calls `work` in a child process that is confined, as far as this system can confine it, and
// returns its result. The text that it compiles may come from a server. It may only write to
// `folder`, which is removed at its end. REQUIRES: `work` starts no threads. Aborted: the process
// died. Other errors are those of `work`, and of starting the process.
absl::StatusOr<std::string> RunConfined(
    const std::string& lock_path,
    absl::FunctionRef<absl::StatusOr<std::string>(const std::string& folder)> work);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_CONFINED_H_
