#ifndef HONE_CLIENT_CONNECTION_PRIVATE_SERVER_H_
#define HONE_CLIENT_CONNECTION_PRIVATE_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/connection/private_paths.h"

namespace hone::client {

// A client's reference to the private server of its user: an ordinary hone-server (and hone-worker)
// on a Unix socket, one per data folder. The first client starts it. It stops when the last
// reference is destroyed or the process that holds it ends. See keeper.h. Used by one thread.
class PrivateServer {
 public:
  struct Options {
    std::string data_dir;        // "": DefaultDataDir()
    std::string program_dir;     // holds Hone's programs; "": the folder of this program
    bool with_worker = false;    // for commands that measure
    std::string device = "cpu";  // the device that the worker measures on
    bool join_only = false;      // do not start a server; the caller may have several threads
    absl::Duration timeout = absl::Seconds(40);  // to start, or for a previous server to end
  };

  // Starts the server or joins a running one; does not wait until it is ready. REQUIRES: join_only,
  // or this process has one thread, because it may fork; call this before any gRPC function.
  // FailedPrecondition: hone-server or a program of the worker is not in program_dir, or there is
  // no server to join. PermissionDenied, ResourceExhausted: the data folder cannot be written or is
  // full. DeadlineExceeded: a previous server does not exit.
  static absl::StatusOr<std::unique_ptr<PrivateServer>> StartOrJoin(const Options& options);
  ~PrivateServer();
  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;

  // Waits until the server is ready. FailedPrecondition: it could not start, for example because
  // the store is corrupt or has a newer schema; the message contains the end of its log.
  // DeadlineExceeded: it takes longer than Options::timeout.
  absl::Status WaitUntilReady();

  // Ok while the server and the worker are running or being restarted. FailedPrecondition: the
  // server has died, or the requested worker keeps failing; the message contains the end of the
  // log. Does not wait.
  absl::Status Check();

  // "unix:/…", for Connection.
  const std::string& address() const { return address_; }
  const PrivatePaths& paths() const { return paths_; }

 private:
  PrivateServer(Options options, PrivatePaths paths);

  // Makes one attempt. Unavailable: the keeper is starting or exiting; try again.
  absl::Status TryAttach();
  absl::Status StoppedError() const;
  // Waits for the next packet from the keeper. Unavailable: the keeper has exited.
  absl::StatusOr<std::string> Receive(absl::Time deadline);

  const Options options_;
  const PrivatePaths paths_;
  const std::string address_;
  int fd_ = -1;  // the connection to the keeper; keeps the server running
  bool ready_ = false;
  absl::Status health_;  // the first error that Check found
};

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_PRIVATE_SERVER_H_
