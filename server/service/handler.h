#ifndef HONE_SERVER_SERVICE_HANDLER_H_
#define HONE_SERVER_SERVICE_HANDLER_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/job/actor/executor.h"
#include "server/job/actor/task_environment.h"
#include "server/job/job_manager.h"
#include "server/job/search/draft_work.h"
#include "server/job/search/model_work.h"
#include "server/service/call_observer.h"
#include "server/service/gate.h"
#include "server/service/reads/reader_threads.h"
#include "server/service/standing_keeper.h"
#include "server/service/transfer_handler.h"
#include "server/service/watch_hub.h"
#include "server/store/retention.h"
#include "server/store/store.h"

namespace hone::service {

// The web page of a server, which server/web implements. Thread-safe.
class Dashboard {
 public:
  virtual ~Dashboard() = default;
  struct Opened {
    std::string url;
    absl::Time expires;
  };
  // Opens a session for a caller, in which it may do what its role may do. FailedPrecondition: the
  // server serves no page. ResourceExhausted: too many sessions.
  virtual absl::StatusOr<Opened> Open(const rpc::Identity& caller) = 0;
};

// The objects to which handlers pass the work. All outlive the handlers.
struct Dependencies {
  const Clock* clock = nullptr;  // wall clock, for times that are stored
  const rpc::Authenticator* authenticator = nullptr;
  const Readiness* readiness = nullptr;
  store::Store* store = nullptr;
  fleet::Fleet* fleet = nullptr;
  fleet::ArtifactCache* artifacts = nullptr;
  const job::TaskEnvironment* environment = nullptr;
  job::Executor* executor = nullptr;  // for computation that is too slow for gRPC's threads
  ReaderThreads* readers = nullptr;   // for reads of the store
  job::JobManager* jobs = nullptr;
  job::ModelWork* models = nullptr;
  job::DraftWork* drafts = nullptr;
  StandingKeeper* standings = nullptr;
  WorkerMemory* worker_memory = nullptr;
  WatchHub* watches = nullptr;
  TransferHandler* uploads = nullptr;
  TransferHandler* downloads = nullptr;
  ServerObserver* observer = nullptr;  // may be null
  Dashboard* dashboard = nullptr;      // may be null
  absl::Duration target_wait;          // see ServerOptions
  store::RetentionPolicy retention;
};

using Context = grpc::CallbackServerContext;

// A call that the gate has admitted.
struct Call {
  Context* context = nullptr;  // valid until the call is answered
  rpc::Identity caller;
  std::chrono::steady_clock::time_point arrived;
};

// For long work: Cancelled once the caller has gone, or its deadline is over.
inline job::StopCheck StopWithCaller(const Call& call) {
  return [context = call.context] {
    return context->IsCancelled() ? absl::CancelledError("the caller has gone") : absl::OkStatus();
  };
}

// Describes a read of the store for a call. The read ends when the call does.
inline ReaderThreads::Read ReadOf(ReaderLane lane, const Call& call) {
  const std::string host = rpc::PeerHost(*call.context);
  return {.lane = lane,
          .caller = call.caller.name.empty() ? host : absl::StrCat(call.caller.name, " at ", host),
          .cancelled = [context = call.context] { return context->IsCancelled(); }};
}

// Returns the status for a caller. A write fails with Aborted if the server has lost the
// leadership; the caller should repeat the call, at the next leader.
inline grpc::Status ToCaller(const absl::Status& status) {
  return rpc::ToGrpc(absl::IsAborted(status) ? absl::UnavailableError(status.message()) : status);
}

// Finishes a unary call. Must be called once, from any thread.
class Reply {
 public:
  explicit Reply(grpc::ServerUnaryReactor* reactor) : reactor_(reactor) {}
  void operator()(const absl::Status& status) const { reactor_->Finish(ToCaller(status)); }

 private:
  grpc::ServerUnaryReactor* reactor_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_HANDLER_H_
