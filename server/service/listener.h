#ifndef HONE_SERVER_SERVICE_LISTENER_H_
#define HONE_SERVER_SERVICE_LISTENER_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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
#include "server/service/call_observer.h"
#include "server/service/gate.h"
#include "server/service/reads/reader_threads.h"
#include "server/service/services.h"
#include "server/store/read_limit.h"

namespace hone::service {

// A service of one listener. The gate checks each call by the name of its method before the handler
// gets it. If a request contains a worker_id, the caller must be that worker. Methods that are not
// added are not served. Thread-safe once it is registered.
class GuardedService final : public grpc::Service {
 public:
  // `name`: "TuningService". REQUIRES: the gate, the dependencies and the handlers outlive this
  // object. While the server is not ready, calls end with Unavailable.
  GuardedService(absl::string_view name, const Gate* gate, const Dependencies& deps)
      : prefix_(absl::StrCat("/hone.v1.", name, "/")),
        gate_(gate),
        readiness_(deps.readiness),
        executor_(deps.executor),
        readers_(deps.readers) {}

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

  // Adds a handler of one of these forms. `name`: of a method of the service. If a handler throws
  // an exception, the call ends with Internal.
  template <typename S, typename Request, typename Response>
  void Add(absl::string_view name, S* service,
           absl::Status (S::*handle)(const Call&, const Request&, Response*),
           On on = On::kCallback) {
    AddReplying<Request, Response>(
        name, on, [=](const Call& call, const Request* request, Response* response, Reply reply) {
          reply((service->*handle)(call, *request, response));
        });
  }
  // A handler that may answer later.
  template <typename S, typename Request, typename Response>
  void Add(absl::string_view name, S* service,
           void (S::*handle)(const Call&, const Request*, Response*, Reply),
           On on = On::kCallback) {
    AddReplying<Request, Response>(
        name, on, [=](const Call& call, const Request* request, Response* response, Reply reply) {
          (service->*handle)(call, request, response, reply);
        });
  }
  // A handler that makes its own reactor.
  template <typename S, typename Request, typename Response>
  void Add(absl::string_view name, S* service,
           grpc::ServerUnaryReactor* (S::*handle)(const Call&, const Request*, Response*)) {
    AddUnary<Request, Response>(name,
                                [=](const Call& call, const Request* request, Response* response) {
                                  return (service->*handle)(call, request, response);
                                });
  }
  // A handler with a stream of answers.
  template <typename S, typename Request, typename Response>
  void Add(absl::string_view name, S* service,
           grpc::ServerWriteReactor<Response>* (S::*handle)(const Call&, const Request*)) {
    using Reactor = grpc::ServerWriteReactor<Response>;
    const Access& access = AccessOf(name);
    AddHandler(access, grpc::internal::RpcMethod::SERVER_STREAMING,
               new grpc::internal::CallbackServerStreamingHandler<Request, Response>(
                   [=, this, &access](Context* context, const Request* request) -> Reactor* {
                     const store::NoReads no_reads(kThread);
                     const auto call = Admit(context, access, request);
                     if (!call.ok()) return new Refused<Reactor>(call.status());
                     return (service->*handle)(*call, request);
                   }));
  }
  // A handler with a stream of requests.
  template <typename S, typename Request, typename Response>
  void Add(absl::string_view name, S* service,
           grpc::ServerReadReactor<Request>* (S::*handle)(const Call&, Response*)) {
    using Reactor = grpc::ServerReadReactor<Request>;
    const Access& access = AccessOf(name);
    AddHandler(access, grpc::internal::RpcMethod::CLIENT_STREAMING,
               new grpc::internal::CallbackClientStreamingHandler<Request, Response>(
                   [=, this, &access](Context* context, Response* response) -> Reactor* {
                     const store::NoReads no_reads(kThread);
                     const auto call = Admit<Request>(context, access, nullptr);
                     if (!call.ok()) return new Refused<Reactor>(call.status());
                     return (service->*handle)(*call, response);
                   }));
  }

 private:
  static constexpr char kThread[] = "a thread of gRPC";

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
  void AddReplying(absl::string_view name, On on, Handle handle) {
    AddUnary<Request, Response>(
        name, [=, this](const Call& call, const Request* request, Response* response) {
          grpc::ServerUnaryReactor* reactor = call.context->DefaultReactor();
          const Reply reply(reactor);
          Start(on, call, reply, [=] { handle(call, request, response, reply); });
          return reactor;
        });
  }
  // Runs the handler of a call.
  template <typename Handle>
  void Start(On on, const Call& call, Reply reply, Handle handle) {
    const auto run = [=] {
      const absl::Status threw = job::Attempt([&] {
        handle();
        return absl::OkStatus();
      });
      if (!threw.ok()) reply(threw);
    };
    if (on == On::kCallback) return run();
    if (on == On::kExecutor) return executor_->Schedule(run);
    ReaderThreads::Read read =
        ReadOf(on == On::kShortReads ? ReaderLane::kShort : ReaderLane::kLong, call);
    read.has_time_limit = on != On::kUnlimitedReads;
    readers_->Run(std::move(read),
                  [=](const absl::Status& admitted) { admitted.ok() ? run() : reply(admitted); });
  }
  template <typename Request, typename Response, typename Handle>
  void AddUnary(absl::string_view name, Handle handle) {
    const Access& access = AccessOf(name);
    AddHandler(access, grpc::internal::RpcMethod::NORMAL_RPC,
               new grpc::internal::CallbackUnaryHandler<Request, Response>(
                   [=, this, &access](Context* context, const Request* request,
                                      Response* response) -> grpc::ServerUnaryReactor* {
                     const store::NoReads no_reads(kThread);
                     const absl::StatusOr<Call> call = Admit(context, access, request);
                     if (call.ok()) return handle(*call, request, response);
                     grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
                     reactor->Finish(rpc::ToGrpc(call.status()));
                     return reactor;
                   }));
  }
  // `request` is null for a stream of requests.
  template <typename Request>
  absl::StatusOr<Call> Admit(Context* context, const Access& access, const Request* request) const {
    Call call{.context = context, .arrived = std::chrono::steady_clock::now()};
    HONE_ASSIGN_OR_RETURN(call.caller, gate_->Admit(*context, access.method, request));
    if constexpr (requires { request->worker_id(); }) {
      if (request != nullptr) {
        HONE_RETURN_IF_ERROR(gate_->CheckWorkerId(call.caller, request->worker_id()));
      }
    }
    HONE_RETURN_IF_ERROR(readiness_->Check());
    return call;
  }
  // Returns the rule of a method of this service. REQUIRES: the table in gate.cc has it.
  const Access& AccessOf(absl::string_view name) const;
  // Adds a handler, which gets only requests of the size that its method allows.
  void AddHandler(const Access& access, grpc::internal::RpcMethod::RpcType type,
                  grpc::internal::MethodHandler* handler);

  const std::string prefix_;  // "/hone.v1.TuningService/"
  const Gate* const gate_;
  const Readiness* const readiness_;
  job::Executor* const executor_;
  ReaderThreads* const readers_;
  int count_ = 0;  // number of methods
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
