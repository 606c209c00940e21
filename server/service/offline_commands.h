#ifndef HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_
#define HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/command_line.h"

namespace hone::service {

// Returns the exit code of `hone-server`: kUsageExitCode for wrong usage, such as a bad argument or
// a missing file, and 1 for other errors.
inline int ExitCodeFor(const absl::Status& status) {
  if (status.ok()) return 0;
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? kUsageExitCode : 1;
}

// Adds restore, merge and revoke to the help of the program. If one of them is given when `app` is
// parsed, it was not the first word, so that RunOfflineCommand has not run it.
std::array<const Command*, 3> ListOfflineCommands(Command& app);

// Runs `hone-server restore` or `hone-server merge`, which work on a store that no server has open,
// or `hone-server revoke`. Returns the exit code; nullopt if the first word is none of them.
std::optional<int> RunOfflineCommand(int argc, char** argv);

// What Revoke has withdrawn.
struct RevokeReport {
  std::vector<std::string> serials;  // of certificates that were not revoked before
  std::vector<std::string> tokens;   // names of callers whose token was removed
};

// Withdraws the access of a caller. `folder` was made by Initialize. `who`: the name of a caller,
// whose certificates are revoked and whose token is removed; or the serial number or the file of a
// certificate, which is revoked alone. A server that runs with these files notices it. NotFound: a
// file is missing, or `who` is unknown. InvalidArgument: a file is malformed, and nothing was
// changed.
absl::StatusOr<RevokeReport> Revoke(const std::string& folder, const std::string& who,
                                    absl::Time now);

struct InitOptions {
  std::string folder;  // created if it does not exist
  // Names and addresses of the server; "localhost" is always added. The configurations of callers
  // contain the first one.
  std::vector<std::string> hosts;
  int port = 7070;
  std::vector<std::string> workers;  // names of workers to make a configuration for
  std::string store;                 // a file or a URI; "": hone.db in the folder
  absl::Duration authority_lifetime = absl::Hours(24 * 3650);
  absl::Duration certificate_lifetime = absl::Hours(24 * 825);
};

// The files that were made, as absolute paths.
struct InitReport {
  std::string config;               // the file for hone-server --config
  std::vector<std::string> listen;  // the addresses in that file
  std::vector<std::string> files;
};

// Returns the addresses on which a server with these hosts listens: the IP addresses among them,
// and localhost. If one of them is a name, the server listens on every address of the machine,
// because a name may stand for any of them.
std::vector<std::string> ListenAddresses(const std::vector<std::string>& hosts, int port);

// Makes the files for a server for a team: an authority, and lists of the certificates that it has
// issued and of those that are revoked; certificates for the server, administrators, clients and
// each named worker; a token for each of these callers, and a table of the tokens' hashes;
// hone.toml for the server; and complete configurations for `hone` (client.conf, admin.conf) and
// hone-worker (worker-NAME.conf). Only the owner may read the files. `hone worker-config` makes
// configurations for further workers. AlreadyExists: one of the files exists; nothing was changed.
// InvalidArgument: a worker's name is malformed or given twice. Other errors are those of writing.
absl::StatusOr<InitReport> Initialize(const InitOptions& options, absl::Time now);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_
