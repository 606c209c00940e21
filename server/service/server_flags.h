#ifndef HONE_SERVER_SERVICE_SERVER_FLAGS_H_
#define HONE_SERVER_SERVICE_SERVER_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/security.h"
#include "server/service/server.h"

// The options of hone-server, as its command line and its configuration file say them.
namespace hone::service {

struct Flags {
  std::vector<std::string> listen;
  std::vector<std::string> listen_clients;
  std::vector<std::string> listen_workers;
  std::vector<std::string> listen_admin;
  std::string store;
  rpc::ServerSecuritySources security;
  std::string tokens;
  std::string audit_log;
  std::string metrics_listen;
  double rate_limit = 10'000;
  int64_t upload_limit_mib = UploadLimits().max_bytes >> 20;
  std::string log_format = "text";
  std::string log_level = "info";
  std::string ready_file;
  bool private_mode = false;
  bool check_config = false;
  int threads = 0;
  double shutdown_limit = 5;
};

// What the flags ask for, with every file that they name. Errors name the option.
absl::StatusOr<ServerOptions> ToOptions(const Flags& flags);

// The files that may change while the server runs: of certificates and tokens.
std::vector<std::string> ReloadedFiles(const Flags& flags);
// Reads them again and has the server use them: tokens and certificates each by themselves, so that
// a token can be withdrawn also while a certificate cannot be used. Not OK: one of a kind cannot be
// used, and what the server used of that kind so far stays.
struct Reloaded {
  absl::Status tokens;
  absl::Status certificates;
};
Reloaded Reload(const Flags& flags, Server& server);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_SERVER_FLAGS_H_
