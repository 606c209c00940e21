#ifndef HONE_SERVER_SERVICE_SERVER_H_
#define HONE_SERVER_SERVICE_SERVER_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/address.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/connections.h"
#include "common/rpc/rate_limit.h"
#include "common/rpc/revocation.h"
#include "common/rpc/security.h"
#include "common/rpc/server_certificates.h"
#include "common/rpc/token_table.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/job/actor/executor.h"
#include "server/job/actor/task_environment.h"
#include "server/job/job_manager.h"
#include "server/job/search/model_work.h"
#include "server/service/call_observer.h"
#include "server/service/gate.h"
#include "server/service/listener.h"
#include "server/service/reads/reader_threads.h"
#include "server/service/standing_keeper.h"
#include "server/service/transfer_handler.h"
#include "server/service/watch_hub.h"
#include "server/store/retention.h"
#include "server/store/store.h"

namespace hone::service {

struct ServerOptions {
  struct Listen {
    rpc::Address address;
    std::optional<rpc::Role> role = {};  // of the callers that it serves; nullopt: all
  };
  std::vector<Listen> listen;
  rpc::ServerSecurity security;  // of TCP addresses
  // The tokens of callers. If null, no tokens are accepted, and callers need a certificate if
  // `security` asks for one. Without either, every caller may do everything, and listening on
  // addresses that other machines can reach needs security.insecure.
  std::shared_ptr<const rpc::TokenTable> tokens;
  // Certificates of callers that are refused although their authority is trusted; may be null.
  std::shared_ptr<const rpc::RevocationList> revoked;
  // Limit for each caller, who may make twice as many calls at once. 0: no limit.
  double calls_per_second = 0;
  TransferLimits uploads;
  TransferLimits downloads;
  rpc::ConnectionLimits connections;  // over TCP
  ReaderOptions readers;
  std::string audit_log;  // path of the file; "": no audit log
  AuditLog::Options audit;
  ServerObserver* observer = nullptr;  // outlives the server; may be null
  Dashboard* dashboard = nullptr;      // the web page; outlives the server; may be null
  // The server belongs to the clients of one user. A job without a WatchJob stream for
  // unwatched_limit is cancelled, and all other unfinished jobs are cancelled at the end.
  bool private_mode = false;
  fleet::FleetOptions fleet;
  job::JobOptions job;
  // How long CreateJob waits for a worker of its target, because a worker and a job may be started
  // at the same time. Must be less than the 20 s deadline of the clients' calls.
  absl::Duration target_wait = absl::Seconds(15);
  absl::Duration unwatched_limit = absl::Seconds(10);
  int threads = 2;  // number of threads that evaluate candidates and train models
  // Maximum duration of Shutdown.
  absl::Duration shutdown_limit = absl::Seconds(5);
  store::RetentionWork::Options retention;  // not used in private mode
};

// Checks that the server may listen on its addresses. Server::Start does the same check.
// PermissionDenied: other machines can reach an address, and traffic is not encrypted or callers
// are not authenticated.
absl::Status CheckListeners(const ServerOptions& options);
// Checks that the addresses are free and that the audit log can be written, before a store is made
// that Server::Start would leave behind. Errors are those of Server::Start.
absl::Status CheckCanStart(const ServerOptions& options);

// The whole server in one object: store, fleet, jobs, and the gRPC services on its addresses, with
// health and reflection. Made by main, and by integration tests in their own process.
class Server {
 public:
  static constexpr absl::Duration kTick = absl::Milliseconds(100);
  // How often a standby tries to become the leader.
  static constexpr absl::Duration kCompeteInterval = absl::Milliseconds(500);

  // Listens, and tries to become the leader of the store: then it resumes unfinished jobs and
  // serves. Otherwise it is a standby, which refuses all calls with Unavailable, says NOT_SERVING,
  // and goes on trying. AlreadyExists: an address is in use. PermissionDenied: see CheckListeners.
  // Other errors are those of the audit log and the store.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      ServerOptions options, std::shared_ptr<store::Store> store,
      std::unique_ptr<job::TaskEnvironment> environment);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The addresses on which it listens, with the ports that it got.
  std::vector<rpc::Address> addresses() const;

  // For callers in this process; see Listener::StartInProcess. REQUIRES: options.dashboard is set.
  std::shared_ptr<grpc::Channel> InProcessChannel() const { return inside_->InProcessChannel(); }
  rpc::Authenticator& authenticator() { return authenticator_; }
  // The text of a workload or a space. NotFound: the digest is unknown.
  absl::StatusOr<std::string> Text(const std::string& digest) { return store_->GetText(digest); }
  // REQUIRES: Shutdown was not called.
  std::vector<ServerMetric> Metrics() const;
  Readiness::State state() const { return readiness_.state(); }
  // Whether the server has led and lost the leadership. It then refuses calls like a standby, and
  // its jobs are suspended. The owner should make a new server with the same store, which competes
  // again.
  bool IsDeposed() const { return deposed_; }
  // Why the server ends with a failure: the store is damaged, or its last writes were lost. Set by
  // Shutdown.
  const absl::Status& failure() const { return failure_; }

  // Replaces the tokens for later calls, or the certificates for later connections. Active calls
  // and connections continue. FailedPrecondition: the new settings change whether callers are
  // authenticated or traffic is encrypted, which needs a restart; nothing was changed. Thread-safe.
  absl::Status ReplaceTokens(std::shared_ptr<const rpc::TokenTable> tokens);
  // Replaces the list of revoked certificates for later calls. May be null.
  void ReplaceRevoked(std::shared_ptr<const rpc::RevocationList> revoked) {
    authenticator_.SetRevoked(std::move(revoked));
  }
  absl::Status ReplaceCertificates(const rpc::ServerSecurity& security);

  // Refuses new calls with UNAVAILABLE, ends streams and held calls, commits queued writes, and
  // leaves unfinished jobs to the next leader. Returns false if work still
  // runs after `limit`, such as a search that proposes. The process may then exit without
  // destroying the server: what this work still writes is not needed. The destructor waits
  // without a limit. Not thread-safe.
  bool Shutdown(absl::Duration limit = absl::InfiniteDuration());

 private:
  bool StopWork(absl::Duration limit);
  Server(ServerOptions options, std::shared_ptr<store::Store> store,
         std::unique_ptr<job::TaskEnvironment> environment);
  // Returns the options of the fleet, with its callbacks set.
  fleet::FleetOptions OptionsOfFleet();
  void NoteRefusedConnection(absl::string_view reason, const std::string& host);
  absl::Status Listen();
  void SetServing(Listener::Serving serving);
  void EndServing();
  // Tries to become the leader, and begins to lead. Errors are those of the reads of the store; the
  // server has then lost the leadership or cannot serve.
  absl::Status Compete();
  absl::Status BeginToLead();
  void Depose(const absl::Status& why);
  void RunTicks();
  void TickParts();
  void CancelUnwatched();
  void CancelAllJobs();

  // In the order of their dependencies, because members are destroyed in reverse order.
  const ServerOptions options_;
  const SystemClock clock_;         // for times that are stored
  const SteadyClock steady_clock_;  // for deadlines
  rpc::Authenticator authenticator_;
  rpc::ServerCertificates certificates_;
  rpc::RateLimiter limiter_;
  std::unique_ptr<AuditLog> audit_;
  Readiness readiness_;
  fleet::ArtifactCache artifacts_;
  rpc::Connections connections_;
  TransferHandler uploads_;
  TransferHandler downloads_;
  fleet::Fleet fleet_;
  const std::unique_ptr<job::TaskEnvironment> environment_;
  std::unique_ptr<job::ThreadPool> pool_, learning_pool_;
  std::unique_ptr<job::JobManager> jobs_;
  std::unique_ptr<job::ModelWork> models_;
  std::unique_ptr<job::DraftWork> drafts_;
  std::shared_ptr<store::Store> store_;
  const std::unique_ptr<ReaderThreads> readers_;
  std::unique_ptr<StandingKeeper> standings_;
  std::unique_ptr<WorkerMemory> worker_memory_;
  std::unique_ptr<store::RetentionWork> retention_;  // null in private mode
  std::unique_ptr<WatchHub> watches_;
  std::unique_ptr<Services> services_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unique_ptr<Listener> inside_;                   // for the web page; null without one
  std::map<std::string, absl::Time> unwatched_since_;  // used only by the tick thread
  absl::Notification stop_ticks_;
  std::thread ticks_;
  std::atomic<bool> deposed_ = false;
  bool shut_down_ = false;
  // What the listeners say while this server leads. Used only by the tick thread.
  Listener::Serving serving_ = Listener::Serving::kAll;
  absl::Status failure_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_SERVER_H_
