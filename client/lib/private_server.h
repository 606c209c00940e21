#ifndef HONE_CLIENT_LIB_PRIVATE_SERVER_H_
#define HONE_CLIENT_LIB_PRIVATE_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/lib/private_paths.h"

namespace hone::client {

// A client's hold on the private server of its user: the real hone-server (and hone-worker) on a
// Unix socket, one per data folder, started by the first client and ended after the last one has
// gone, also when that one is killed. See keeper.h. Used by one thread. Destroying it lets go; the
// server ends when nobody else holds it.
class PrivateServer {
 public:
  struct Options {
    std::string data_dir;      // "": DefaultDataDir()
    std::string program_dir;   // holds Hone's programs; "": the folder of this program
    bool with_worker = false;  // for commands that measure
    absl::Duration timeout = absl::Seconds(40);  // for start, or for the end of the one before
  };

  // Starts or joins; the server gets ready meanwhile. REQUIRES: this process has one thread (it may
  // fork), so call it before anything of gRPC. FailedPrecondition: hone-server, or what a worker
  // consists of when one is wanted, is not beside this program. PermissionDenied,
  // ResourceExhausted: the data folder cannot be written or is full. DeadlineExceeded: an earlier
  // server does not end.
  static absl::StatusOr<std::unique_ptr<PrivateServer>> StartOrJoin(const Options& options);
  ~PrivateServer();
  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;

  // Returns once the server answers. FailedPrecondition: it could not start (a corrupt store, one
  // of a newer schema, …); the message is its own. DeadlineExceeded: it takes longer than
  // Options::timeout.
  absl::Status WaitUntilReady();

  // Ok while server and worker are up or being started again. FailedPrecondition: the server has
  // died, or the worker that was asked for does not stay up; the message has their last words. Does
  // not wait.
  absl::Status Check();

  // "unix:/…", for Connection.
  const std::string& address() const { return address_; }
  const PrivatePaths& paths() const { return paths_; }

 private:
  PrivateServer(Options options, PrivatePaths paths);

  // One attempt. Unavailable: the keeper was just ending or starting; try again.
  absl::Status TryAttach();
  // Waits for the next packet of the keeper until the deadline. Unavailable: it has gone.
  absl::StatusOr<std::string> Receive(absl::Time deadline);

  const Options options_;
  const PrivatePaths paths_;
  const std::string address_;
  int fd_ = -1;  // the connection to the keeper: held open as long as the server is wanted
  bool ready_ = false;
  absl::Status health_;  // what Check found
};

// The folder of the running program.
std::string ProgramDir();

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_PRIVATE_SERVER_H_
