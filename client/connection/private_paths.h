#ifndef HONE_CLIENT_CONNECTION_PRIVATE_PATHS_H_
#define HONE_CLIENT_CONNECTION_PRIVATE_PATHS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::client {

// The paths of a user's private server. All files are in the data folder, except for the sockets if
// the folder's path is too long for a socket.
struct PrivatePaths {
  std::string data_dir;
  std::string store;          // the record store, opened only by the server
  std::string lock;           // locked by the keeper, which writes its process id and the server's
                              // socket into it
  std::string server_socket;  // gRPC
  std::string keeper_socket;  // each client keeps a connection to the keeper open
  std::string ready_file;     // written by the server when it is ready
  std::string server_log;

  // The log of a worker, and its folder: artifacts and unacknowledged results. `device` is "cpu" or
  // "opencl:N".
  std::string WorkerLog(absl::string_view device) const;
  std::string WorkerState(absl::string_view device) const;
};

// The user's data folder: $XDG_DATA_HOME/hone, by default ~/.local/share/hone.
// FailedPrecondition: neither XDG_DATA_HOME nor HOME is set.
absl::StatusOr<std::string> DefaultDataDir();

// Returns the paths for a data folder and makes the folders. PermissionDenied: the folder cannot be
// made, or belongs to another user. ResourceExhausted: the disk is full. FailedPrecondition: a
// parent folder is missing. The messages say what to do.
absl::StatusOr<PrivatePaths> MakePrivatePaths(const std::string& data_dir);

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_PRIVATE_PATHS_H_
