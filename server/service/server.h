#ifndef HONE_SERVER_SERVICE_SERVER_H_
#define HONE_SERVER_SERVICE_SERVER_H_

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/steady_clock.h"
#include "common/rpc/address.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/rate_limit.h"
#include "common/rpc/security.h"
#include "common/rpc/server_certificates.h"
#include "common/rpc/token_table.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/service/audit_log.h"
#include "server/service/listener.h"
#include "server/service/readiness.h"
#include "server/service/server_observer.h"
#include "server/service/services.h"
#include "server/service/standing_keeper.h"
#include "server/service/upload_handler.h"
#include "server/service/watch_hub.h"
#include "server/store/store.h"
#include "server/task/executor.h"
#include "server/task/job_manager.h"
#include "server/task/model_work.h"
#include "server/task/preflight.h"
#include "server/task/task_environment.h"

namespace hone::service {

struct ServerOptions {
  std::vector<rpc::Address> listen;          // serve all callers
  std::vector<rpc::Address> listen_clients;  // serve clients alone, …
  std::vector<rpc::Address> listen_workers;
  std::vector<rpc::Address> listen_admin;
  rpc::ServerSecurity security;  // of TCP addresses
  // Whose callers are known; null: none are, and callers need a certificate where `security` asks
  // for one. Without either, whoever can connect may do everything, and addresses beyond this
  // machine need security.insecure.
  std::shared_ptr<const rpc::TokenTable> tokens;
  double calls_per_second = 0;  // of each caller, twice as many at once; 0: no limit
  UploadLimits uploads;
  std::string audit_log;  // file; "": none
  AuditLog::Options audit;
  ServerObserver* observer = nullptr;  // outlives the server; null: there is none
  // Outlives the server; null: jobs begin without.
  task::Preflight* preflight = nullptr;
  // Serves the clients of one user alone and ends with them: a job that nobody watches for
  // unwatched_limit is cancelled, and so is what is left at the end.
  bool private_mode = false;
  fleet::FleetOptions fleet;
  task::JobOptions job;
  // How long CreateJob waits for a worker of its target. A worker and a job may be started
  // together. Less than the 20 s that clients give a call.
  absl::Duration target_wait = absl::Seconds(15);
  absl::Duration unwatched_limit = absl::Seconds(10);
  int threads = 2;  // that evaluate candidates and train
  // How long Shutdown takes at most.
  absl::Duration shutdown_limit = absl::Seconds(5);
};

// Whether the addresses may be served as the options say; Server::Start asks the same.
// PermissionDenied: one lies beyond this machine, and traffic is not encrypted, or callers are not
// asked who they are.
absl::Status CheckListeners(const ServerOptions& options);

// The whole server in one object: store, fleet, jobs, and the gRPC services on its addresses, with
// health and reflection. Assembled by main, and by integration tests in process.
class Server {
 public:
  static constexpr absl::Duration kTick = absl::Milliseconds(100);

  // Takes up unfinished jobs and serves. AlreadyExists: an address is in use; PermissionDenied: see
  // CheckListeners; else what the audit log and the store say.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      ServerOptions options, std::unique_ptr<store::Store> store,
      std::unique_ptr<task::TaskEnvironment> environment);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Where it listens, with the ports that it got.
  std::vector<rpc::Address> addresses() const;

  // Not once it shuts down.
  ServerStats Stats() const;

  // From now on calls are known by these tokens, or connections begin with these certificates; what
  // is under way goes on. FailedPrecondition: whether callers are asked who they are, or traffic is
  // encrypted, would be another: that needs a new start, and nothing was changed. Thread-safe.
  absl::Status ReplaceTokens(std::shared_ptr<const rpc::TokenTable> tokens);
  absl::Status ReplaceCertificates(const rpc::ServerSecurity& security);

  // Refuses new calls with UNAVAILABLE, ends streams and held calls, commits what is queued, and
  // leaves unfinished jobs to the next server. Called by the destructor, too; from one thread.
  void Shutdown();

 private:
  Server(ServerOptions options, std::unique_ptr<store::Store> store,
         std::unique_ptr<task::TaskEnvironment> environment);
  // That keep how workers stand.
  fleet::FleetOptions OptionsOfFleet();
  absl::Status Listen();
  absl::Status AddListeners(const std::vector<rpc::Address>& addresses,
                            std::vector<rpc::Role> roles);
  void SetServing(bool serving);
  void RunTicks();
  void CancelUnwatched();
  void CancelAllJobs();

  // In the order of what needs what: destroyed from below.
  const ServerOptions options_;
  const SystemClock clock_;         // of what is written down
  const SteadyClock steady_clock_;  // of deadlines
  rpc::Authenticator authenticator_;
  rpc::ServerCertificates certificates_;
  rpc::RateLimiter limiter_;
  std::unique_ptr<AuditLog> audit_;
  Readiness readiness_;
  fleet::ArtifactCache artifacts_;
  UploadHandler uploads_;
  fleet::Fleet fleet_;
  const std::unique_ptr<task::TaskEnvironment> environment_;
  std::unique_ptr<task::ThreadPool> pool_;
  std::unique_ptr<task::JobManager> jobs_;
  std::unique_ptr<task::ModelWork> models_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<StandingKeeper> standings_;
  std::unique_ptr<WatchHub> watches_;
  std::unique_ptr<Services> services_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::map<std::string, absl::Time> unwatched_since_;  // of the tick thread
  absl::Notification stop_ticks_;
  std::thread ticks_;
  bool shut_down_ = false;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_SERVER_H_
