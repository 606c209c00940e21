#ifndef HONE_SERVER_SERVICE_INIT_H_
#define HONE_SERVER_SERVICE_INIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::service {

struct InitOptions {
  std::string folder;              // is made; "": DefaultServerFolder()
  std::vector<std::string> hosts;  // names and addresses by which the server is dialled; the first
                                   // one is what clients are told. "localhost" is always one
  int port = 7070;
  std::string store;  // "": hone.db in the folder
  absl::Duration authority_lifetime = absl::Hours(24 * 3650);
  absl::Duration certificate_lifetime = absl::Hours(24 * 825);
};

// What was made, by absolute path.
struct InitReport {
  std::string config;  // for hone-server --config
  std::vector<std::string> files;
};

// Makes what a server for a team needs: an authority, a certificate of the server, of an
// administrator, of clients and of workers, a token of each of the three roles with a table of
// their hashes, hone.toml for the server, and a file with everything in it for `hone`
// (client.conf, admin.conf) and hone-worker (worker.conf). Only the owner may read them.
// AlreadyExists: one of the files is there; nothing was changed. Other errors: those of writing.
absl::StatusOr<InitReport> Initialize(const InitOptions& options, absl::Time now);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_INIT_H_
