#ifndef HONE_SERVER_SERVICE_SERVER_FLAGS_H_
#define HONE_SERVER_SERVICE_SERVER_FLAGS_H_

#include <sys/types.h>
#include <time.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/security.h"
#include "server/service/server.h"

// The options of hone-server, from its command line and its configuration file.
namespace hone::service {

// Detects changes of files by polling. Not thread-safe.
class FileWatch {
 public:
  // Records the current state of the files.
  explicit FileWatch(std::vector<std::string> paths);

  // Whether a file was replaced, or its content or permissions have changed, since the last call. A
  // missing file counts as unchanged until it exists again.
  bool Changed();

 private:
  struct Stamp {
    dev_t device = 0;
    ino_t file = 0;
    off_t bytes = 0;
    timespec changed{};  // last change of the content or the permissions
  };
  // Whether the file exists and differs from the stamp. Updates the stamp.
  static bool Look(const std::string& path, Stamp& stamp);

  std::vector<std::pair<std::string, Stamp>> files_;
};

// Returns the whole days of an age.
inline int DaysOf(absl::Duration age) { return static_cast<int>(age / absl::Hours(24)); }

struct Flags {
  std::vector<std::string> listen;
  std::vector<std::string> listen_clients;
  std::vector<std::string> listen_workers;
  std::vector<std::string> listen_admin;
  std::string store;
  rpc::ServerSecuritySources security;
  std::string tokens;
  std::string revoked;
  std::string audit_log;
  std::string metrics_listen;
  std::string web_listen;
  double rate_limit = 10'000;
  int64_t upload_limit_mib = TransferLimits().max_bytes >> 20;
  int connection_limit = rpc::ConnectionLimits().all;
  int host_connection_limit = rpc::ConnectionLimits().of_host;
  // Ages in days, and a size in GiB; 0: no limit.
  int keep_records = DaysOf(store::RetentionPolicy().records);
  int keep_bests = DaysOf(store::RetentionPolicy().bests);
  int keep_events = DaysOf(store::RetentionPolicy().events);
  int keep_jobs = DaysOf(store::RetentionPolicy().jobs);
  int64_t store_limit_gib = store::RetentionPolicy().most_bytes >> 30;
  std::string log_format = "text";
  std::string log_level = "info";
  std::string ready_file;
  bool private_mode = false;
  bool check_config = false;
  bool check_health = false;
  int threads = 0;
  double shutdown_limit = 5;
};

// Converts the flags to options, and reads every file that they name. Errors name the option.
absl::StatusOr<ServerOptions> ToOptions(const Flags& flags);

// Asks the server that runs with these options whether it serves clients, by the health check of
// gRPC, for at most five seconds. Uses a Unix socket if the server has one. Over TCP it trusts the
// authorities of client-ca, or else the server's own certificate. Unavailable: the server does not
// answer, is starting or ending, does not lead, or its certificate is not trusted.
// FailedPrecondition: its port is chosen by the system, so that it is not known here.
absl::Status CheckHealth(const Flags& flags, const ServerOptions& options);

// Returns the files with certificates, keys and authorities, which may change while the server
// runs.
std::vector<std::string> CertificateFiles(const Flags& flags);
// Reads the file of tokens, the list of revoked certificates and these files again, and replaces
// the server's. Returns the status of each of the three. Each is replaced independently, so that a
// token can be withdrawn even while a certificate cannot be used. If a status is not OK, a file
// cannot be used, and the server keeps what it had read from it before. Those that it gets are also
// set in `options`.
std::array<absl::Status, 3> Reload(const Flags& flags, Server& server, ServerOptions& options);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_SERVER_FLAGS_H_
