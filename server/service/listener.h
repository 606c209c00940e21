#ifndef HONE_SERVER_SERVICE_LISTENER_H_
#define HONE_SERVER_SERVICE_LISTENER_H_

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/rpc/acceptor.h"
#include "common/rpc/address.h"
#include "common/rpc/connections.h"
#include "common/rpc/rate_limit.h"
#include "common/rpc/server_certificates.h"
#include "common/rpc/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/job/actor/executor.h"
#include "server/service/best_service.h"
#include "server/service/call_observer.h"
#include "server/service/dashboard_service.h"
#include "server/service/gate.h"
#include "server/service/handler.h"
#include "server/service/job_service.h"
#include "server/service/model/model_service.h"
#include "server/service/reads/reader_threads.h"
#include "server/service/record_service.h"
#include "server/service/worker_service.h"
#include "server/store/read_limit.h"

namespace hone::service {

// A service of one listener. The gate checks each call by the name of its method before the handler
// gets it. If a request contains a worker_id, the caller must be that worker. Methods that are not
// added are not served. Thread-safe once it is registered.
class GuardedService final : public grpc::Service {
 public:
  using Arrival = std::chrono::steady_clock::time_point;

  // REQUIRES: the gate, the dependencies and the handlers outlive this object. While the server is
  // not ready, calls end with Unavailable.
  GuardedService(const Gate* gate, const Dependencies& deps)
      : gate_(gate), readiness_(deps.readiness), executor_(deps.executor), readers_(deps.readers) {}

  // Where a handler runs.
  enum class On {
    // A thread of gRPC, which also renews leases: the handler answers at once or passes the work
    // on, and does not read the store.
    kCallback,
    kShortReads,      // a thread for look-ups in the store
    kLongReads,       // a thread for reads of many rows
    kUnlimitedReads,  // the same, without a limit of time
    kExecutor,        // the executor, for long computation
  };

  // Adds a handler of one of these forms. `method` is a literal such as
  // "/hone.v1.TuningService/GetJob". If a handler throws an exception, the call ends with Internal.
  template <typename S, typename Request, typename Response>
  void Add(const char* method, S* service, absl::Status (S::*handle)(const Request&, Response*),
           On on = On::kCallback) {
    AddReplying<Request, Response>(
        method, on, [=](const Admitted&, const Request* request, Response* response, Reply reply) {
          reply((service->*handle)(*request, response));
        });
  }
  // A handler that depends on the caller.
  template <typename S, typename Request, typename Response>
  void Add(const char* method, S* service,
           absl::Status (S::*handle)(const rpc::Identity&, const Request&, Response*),
           On on = On::kCallback) {
    AddReplying<Request, Response>(
        method, on,
        [=](const Admitted& call, const Request* request, Response* response, Reply reply) {
          reply((service->*handle)(call.caller, *request, response));
        });
  }
  // A handler that depends on the caller and may answer later.
  template <typename S, typename Request, typename Response>
  void Add(const char* method, S* service,
           void (S::*handle)(const rpc::Identity&, const Request*, Response*, Reply),
           On on = On::kCallback) {
    AddReplying<Request, Response>(
        method, on,
        [=](const Admitted& call, const Request* request, Response* response, Reply reply) {
          (service->*handle)(call.caller, request, response, reply);
        });
  }
  // A handler that may answer later.
  template <typename S, typename Request, typename Response>
  void Add(const char* method, S* service,
           void (S::*handle)(Context*, const Request*, Response*, Reply), On on = On::kCallback) {
    AddReplying<Request, Response>(
        method, on,
        [=](const Admitted& call, const Request* request, Response* response, Reply reply) {
          (service->*handle)(call.context, request, response, reply);
        });
  }
  // Adds a handler that makes its own reactor and gets the arrival time of the call.
  template <typename S, typename Request, typename Response>
  void Add(const char* method, S* service,
           grpc::ServerUnaryReactor* (S::*handle)(Context*, const Request*, Response*, Arrival)) {
    AddUnary<Request, Response>(
        method, [=](const Admitted& call, const Request* request, Response* response) {
          return (service->*handle)(call.context, request, response, call.arrived);
        });
  }
  // Adds a handler with a stream of answers.
  template <typename S, typename Request, typename Response>
  void Add(const char* method, S* service,
           grpc::ServerWriteReactor<Response>* (S::*handle)(const rpc::Identity&, Context*,
                                                            const Request*)) {
    using Reactor = grpc::ServerWriteReactor<Response>;
    AddHandler(method, grpc::internal::RpcMethod::SERVER_STREAMING,
               new grpc::internal::CallbackServerStreamingHandler<Request, Response>(
                   [=, this](Context* context, const Request* request) -> Reactor* {
                     const store::NoReads no_reads(kThread);
                     const auto caller = Admit(*context, method, request);
                     if (!caller.ok()) return new Refused<Reactor>(caller.status());
                     return (service->*handle)(*caller, context, request);
                   }));
  }
  // Adds a handler with a stream of requests.
  template <typename S, typename Request, typename Response>
  void Add(const char* method, S* service,
           grpc::ServerReadReactor<Request>* (S::*handle)(Context*, Response*)) {
    using Reactor = grpc::ServerReadReactor<Request>;
    AddHandler(method, grpc::internal::RpcMethod::CLIENT_STREAMING,
               new grpc::internal::CallbackClientStreamingHandler<Request, Response>(
                   [=, this](Context* context, Response* response) -> Reactor* {
                     const store::NoReads no_reads(kThread);
                     const auto caller = Admit<Request>(*context, method, nullptr);
                     if (!caller.ok()) return new Refused<Reactor>(caller.status());
                     return (service->*handle)(context, response);
                   }));
  }

 private:
  static constexpr char kThread[] = "a thread of gRPC";

  // A call that the gate has admitted.
  struct Admitted {
    Context* context = nullptr;
    rpc::Identity caller;
    Arrival arrived;
  };
  // The reactor of a refused stream, which ends at once.
  template <typename Reactor>
  class Refused final : public Reactor {
   public:
    explicit Refused(const absl::Status& why) { this->Finish(rpc::ToGrpc(why)); }
    void OnDone() override { delete this; }

   private:
    ~Refused() override = default;
  };

  template <typename Request, typename Response, typename Handle>
  void AddReplying(const char* method, On on, Handle handle) {
    AddUnary<Request, Response>(
        method, [=, this](const Admitted& call, const Request* request, Response* response) {
          grpc::ServerUnaryReactor* reactor = call.context->DefaultReactor();
          Start(on, call, Reply(reactor), [=](const Admitted& admitted, Reply reply) {
            handle(admitted, request, response, reply);
          });
          return reactor;
        });
  }
  // Runs the handler of a call.
  template <typename Handle>
  void Start(On on, const Admitted& call, Reply reply, Handle handle) {
    const auto run = [=] {
      const absl::Status threw = job::Attempt([&] {
        handle(call, reply);
        return absl::OkStatus();
      });
      if (!threw.ok()) reply(threw);
    };
    if (on == On::kCallback) return run();
    if (on == On::kExecutor) return executor_->Schedule(run);
    ReaderThreads::Read read =
        ReadOf(on == On::kShortReads ? ReaderLane::kShort : ReaderLane::kLong, call.caller.name,
               call.context);
    read.has_time_limit = on != On::kUnlimitedReads;
    readers_->Run(std::move(read),
                  [=](const absl::Status& admitted) { admitted.ok() ? run() : reply(admitted); });
  }
  template <typename Request, typename Response, typename Handle>
  void AddUnary(const char* method, Handle handle) {
    AddHandler(method, grpc::internal::RpcMethod::NORMAL_RPC,
               new grpc::internal::CallbackUnaryHandler<Request, Response>(
                   [=, this](Context* context, const Request* request,
                             Response* response) -> grpc::ServerUnaryReactor* {
                     const store::NoReads no_reads(kThread);
                     const Arrival arrived = std::chrono::steady_clock::now();
                     absl::StatusOr<rpc::Identity> caller = Admit(*context, method, request);
                     if (!caller.ok()) {
                       grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
                       reactor->Finish(rpc::ToGrpc(caller.status()));
                       return reactor;
                     }
                     return handle(Admitted{context, *std::move(caller), arrived}, request,
                                   response);
                   }));
  }
  // `request` is null for a stream of requests.
  template <typename Request>
  absl::StatusOr<rpc::Identity> Admit(const Context& context, const char* method,
                                      const Request* request) const {
    HONE_ASSIGN_OR_RETURN(rpc::Identity caller, gate_->Admit(context, method, request));
    if constexpr (requires { request->worker_id(); }) {
      if (request != nullptr) {
        HONE_RETURN_IF_ERROR(gate_->CheckWorkerId(caller, request->worker_id()));
      }
    }
    HONE_RETURN_IF_ERROR(readiness_->Check());
    return caller;
  }
  // Adds a handler, which gets only requests of the size that its method allows.
  void AddHandler(const char* method, grpc::internal::RpcMethod::RpcType type,
                  grpc::internal::MethodHandler* handler);

  const Gate* const gate_;
  const Readiness* const readiness_;
  job::Executor* const executor_;
  ReaderThreads* const readers_;
  int count_ = 0;  // number of methods
};

// The handlers of all calls, which the listeners of a server share. Thread-safe.
struct Services {
  explicit Services(const Dependencies& dependencies) : deps(dependencies) {}
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  const Dependencies deps;
  JobService jobs{deps};
  BestService bests{deps};
  RecordService records{deps};
  ModelService models{deps};
  FleetService fleet{deps};
  WorkerService worker{deps};
  DashboardService dashboard{deps.dashboard};
};

// One address with its own gRPC server: the services behind a gate, health and reflection.
class Listener {
 public:
  // The objects that a listener uses. All outlive it.
  struct Parts {
    rpc::ServerCertificates* certificates = nullptr;
    rpc::RateLimiter* limiter = nullptr;
    rpc::Connections* connections = nullptr;  // those of TCP addresses; null: they have no limit
    AuditLog* audit = nullptr;                // may be null
    Services* services = nullptr;
  };

  // Starts to accept connections; health is NOT_SERVING until SetServing, and after EndServing.
  // Errors are those of rpc::AddListener, and Unavailable if the address cannot be used.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(const GateOptions& options,
                                                         const Parts& parts);
  // Starts a listener without an address, for callers in this process, who need the token of a
  // session (rpc::Authenticator::SetSessions).
  static absl::StatusOr<std::unique_ptr<Listener>> StartInProcess(const Parts& parts);
  std::shared_ptr<grpc::Channel> InProcessChannel() const;

  // The address, with the port that the listener got if it asked for port 0.
  const rpc::Address& address() const { return address_; }
  // Sets the health status of the services. kReads: the store is damaged and only read, or its disk
  // is full and jobs wait. Then TuningService is SERVING, because it answers look-ups; the others
  // and the server as a whole (the service "") are not.
  enum class Serving { kNothing, kReads, kAll };
  void SetServing(Serving serving);
  // From now on, no service is SERVING, whatever SetServing is told.
  void EndServing();
  // Refuses new calls, and cancels active calls at `deadline`. Returns when no call is active.
  void Shutdown(absl::Time deadline);

 private:
  Listener(const GateOptions& options, const Parts& parts);
  absl::Status Build(grpc::ServerBuilder& builder, const Parts& parts);

  rpc::Address address_;
  const Gate gate_;
  GuardedService tuning_;
  GuardedService worker_;
  GuardedService admin_;
  GuardedService dashboard_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<rpc::Acceptor> acceptor_;  // null if gRPC accepts the connections
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_LISTENER_H_
