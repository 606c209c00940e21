#ifndef HONE_CLIENT_CLI_SESSION_H_
#define HONE_CLIENT_CLI_SESSION_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/records/lock.h"
#include "client/cli/target_argument.h"
#include "client/connection/connection.h"
#include "client/connection/private_server.h"

namespace hone::cli {

// The connection of a command to the given server or, if none is given, to a private server, which
// runs at least as long as the session exists.
class Session {
 public:
  // `with_worker`: the command measures; a private server also starts a worker of the device that
  // the target names. Errors as for ReadLock, PrivateServer::StartOrJoin and WaitUntilReady,
  // Connection::Open, and TargetArgument::FindDevice. REQUIRES: the process has one thread.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const Globals& globals,
                                                       bool with_worker = false);
  // Warns if the server's store is damaged, which a look-up that succeeds does not show.
  ~Session();

  client::Connection& connection() { return *connection_; }
  // Null if a server was given.
  client::PrivateServer* private_server() { return private_server_.get(); }
  // Checks that the private server and, after StartWorker, its worker are running or being
  // restarted. Always ok if a server was given. Does not wait. Errors as for PrivateServer::Check.
  absl::Status CheckPrivate();

  // The kernels of --locked; null if it is not given.
  const KernelLock* lock() const { return lock_.has_value() ? &*lock_ : nullptr; }

  // The key of the given target; for "native", the key of this machine. If this machine has no
  // OpenCL device, "opencl" is the only OpenCL target of the given server's workers.
  // InvalidArgument: the name is unknown.
  absl::StatusOr<std::string> TargetKey() const { return target_.Key(); }
  // The same for a filter: "" if no target was given.
  absl::StatusOr<std::string> GivenTargetKey() const;
  // The text form of the given target. A key is returned unchanged, because only a server with a
  // worker of the target knows its text form. Errors as for TargetKey.
  absl::StatusOr<std::string> TargetText() const { return target_.Text(); }
  // The GPU of this machine that is the target, if it is one.
  const std::optional<target::ListedDevice>& device() const { return target_.device; }
  // The name of that GPU, such as "opencl:0"; "" if the target is not a GPU of this machine.
  std::string GpuName() const { return target_.device ? target_.device->device : ""; }
  // Whether this machine is the target with this key, or has it as the device above.
  bool IsHere(const std::string& key) const;
  // The target of a job: a key, or "native" if a server was given, which means the only target of
  // its workers. Errors as for TargetKey. InvalidArgument: the server is private and the target is
  // neither this machine nor a device of it.
  absl::StatusOr<std::string> TargetForTuning() const;
  // Uses the target of a stored job, as if it had been given with --target.
  // FailedPrecondition: it is an OpenCL target, and no device of this machine has it.
  absl::Status UseTarget(const std::string& key);

  // The time since the command began, which counts toward the limit of the session's first job.
  // Zero in every later call.
  absl::Duration TakeStartTime();

  // Starts a worker of the private server for the target's device, unless the session already has
  // one, and warns if other programs keep this machine busy. Does nothing if a server was given.
  // Errors as for PrivateServer::StartOrJoin.
  absl::Status StartWorker();
  // Waits until the worker of the private server has registered. Returns immediately if a server
  // was given. Calls `waiting` repeatedly; InterruptedError: it returned false. FailedPrecondition:
  // the worker keeps failing, or did not register in time.
  absl::Status WaitForWorker(const std::function<bool()>& waiting);

 private:
  explicit Session(const Globals& globals)
      : warns_of_store_(globals.warns_of_store),
        started_(globals.began),
        target_{.given = globals.target} {}

  // Sets target_.given to the only OpenCL target of the server's workers. `why`: why this machine
  // has none.
  absl::Status UseGpuOfServer(const absl::Status& why);
  // What hone-worker calls the device that the target names.
  std::string DeviceName() const { return target_.device ? target_.device->device : "cpu"; }

  const bool warns_of_store_;
  absl::Time started_;  // infinite future after TakeStartTime
  TargetArgument target_;
  std::optional<KernelLock> lock_;
  std::unique_ptr<client::PrivateServer> private_server_;
  std::unique_ptr<client::PrivateServer> with_worker_;  // set by StartWorker
  std::unique_ptr<client::Connection> connection_;
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_SESSION_H_
