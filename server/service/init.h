#ifndef HONE_SERVER_SERVICE_INIT_H_
#define HONE_SERVER_SERVICE_INIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::service {

struct InitOptions {
  std::string folder;              // is made if it does not exist
  std::vector<std::string> hosts;  // names and addresses by which the server is dialled; the first
                                   // one is what clients are told. "localhost" is always one
  int port = 7070;
  std::vector<std::string> workers;  // names of workers to make a configuration for
  std::string store;                 // "": hone.db in the folder
  absl::Duration authority_lifetime = absl::Hours(24 * 3650);
  absl::Duration certificate_lifetime = absl::Hours(24 * 825);
};

// What was made, by absolute path.
struct InitReport {
  std::string config;               // for hone-server --config
  std::vector<std::string> listen;  // addresses that it names
  std::vector<std::string> files;
};

// Where a server with these hosts listens: on the addresses among them, and on localhost. With a
// name among them it listens on every address of the machine, since a name may stand for any.
std::vector<std::string> ListenAddresses(const std::vector<std::string>& hosts, int port);

// Makes what a server for a team needs: an authority; certificates for the server, administrators,
// clients and each named worker; a token for each of these callers, with a table of the tokens'
// hashes; hone.toml for the server; and files with everything that `hone` (client.conf, admin.conf)
// and hone-worker (worker-NAME.conf) need. Only the owner may read them. Further workers get theirs
// from `hone worker-config`.
// AlreadyExists: one of the files exists; nothing was changed. InvalidArgument: a worker's name is
// malformed or given twice. Other errors are those of writing.
absl::StatusOr<InitReport> Initialize(const InitOptions& options, absl::Time now);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_INIT_H_
