#ifndef HONE_SERVER_SERVICE_INIT_H_
#define HONE_SERVER_SERVICE_INIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::service {

struct InitOptions {
  std::string folder;  // created if it does not exist
  // Names and addresses of the server; "localhost" is always added. The configurations of callers
  // contain the first one.
  std::vector<std::string> hosts;
  int port = 7070;
  std::vector<std::string> workers;  // names of workers to make a configuration for
  std::string store;                 // "": hone.db in the folder
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

// Makes the files for a server for a team: an authority; certificates for the server,
// administrators, clients and each named worker; a token for each of these callers, and a table of
// the tokens' hashes; hone.toml for the server; and complete configurations for `hone`
// (client.conf, admin.conf) and hone-worker (worker-NAME.conf). Only the owner may read the files.
// `hone worker-config` makes configurations for further workers. AlreadyExists: one of the files
// exists; nothing was changed. InvalidArgument: a worker's name is malformed or given twice. Other
// errors are those of writing.
absl::StatusOr<InitReport> Initialize(const InitOptions& options, absl::Time now);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_INIT_H_
