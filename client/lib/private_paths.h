#ifndef HONE_CLIENT_LIB_PRIVATE_PATHS_H_
#define HONE_CLIENT_LIB_PRIVATE_PATHS_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone::client {

// Where the private server of a user lives. Everything but the sockets lies in the data folder; the
// sockets do too, unless its path is too long for one.
struct PrivatePaths {
  std::string data_dir;  // the user's data: the store and what follows
  std::string store;     // the record store, opened by the server alone
  std::string lock;      // locked by the keeper of the running server, which writes its id and its
                         // socket into it
  std::string server_socket;  // gRPC
  std::string keeper_socket;  // clients hold a connection to the keeper for as long as they live
  std::string ready_file;     // written by the server once it answers
  std::string server_log;
  std::string worker_log;
  std::string worker_state;  // the worker's folder: artifacts and unacknowledged results
};

// The user's data folder: $XDG_DATA_HOME/hone, by default ~/.local/share/hone.
// FailedPrecondition: neither XDG_DATA_HOME nor HOME is set.
absl::StatusOr<std::string> DefaultDataDir();

// The paths for a data folder; makes the folders. PermissionDenied: the folder cannot be made or
// belongs to somebody else; ResourceExhausted: the disk is full; FailedPrecondition: the folder
// that should hold it is missing. The messages say what to do.
absl::StatusOr<PrivatePaths> MakePrivatePaths(const std::string& data_dir);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_PRIVATE_PATHS_H_
