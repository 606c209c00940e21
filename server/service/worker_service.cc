#include "server/service/worker_service.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/record/reference_name.h"
#include "common/rpc/status.h"
#include "server/service/artifact_stream.h"
#include "server/service/worker_convert.h"

namespace hone::service {
namespace {

using Monotonic = std::chrono::steady_clock;

// A call of Synchronize while the fleet holds it. Either the fleet's answer or the end of
// the connection finishes it, whichever comes first; the reactor lives until then.
class HeldCall final : public grpc::ServerUnaryReactor {
 public:
  HeldCall(fleet::Fleet* fleet, ServerObserver* observer, v1::SynchronizeResponse* response,
           Monotonic::time_point arrived)
      : fleet_(fleet),
        observer_(observer),
        shared_(std::make_shared<Shared>(observer, arrived)),
        response_(response) {}

  void Start(fleet::WorkerReport report) {
    const std::shared_ptr<Shared> shared = shared_;
    fleet::Fleet* const fleet = fleet_;
    if (observer_ != nullptr) {
      for (const fleet::FinishedLease& finished : report.finished) {
        outcomes_[finished.lease_id] = finished.result.outcome;
      }
    }
    const uint64_t token =
        fleet->Synchronize(std::move(report), [this, shared](fleet::SynchronizeReply reply) {
          if (shared->finished.exchange(true)) return;
          const auto begin = Monotonic::now();
          *response_ = ToProto(reply);
          Observe(reply);
          Finish(grpc::Status::OK);
          shared->Answered(begin);
        });
    // The reactor may be deleted from here on.
    shared->TakenIn();
    shared->token = token;
    if (shared->gone) fleet->Abandon(token);
  }
  void OnCancel() override {
    shared_->gone = true;
    if (const uint64_t token = shared_->token; token != 0) fleet_->Abandon(token);
    if (!shared_->finished.exchange(true)) {
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the worker disconnected"));
    }
  }
  void OnDone() override { delete this; }

 private:
  struct Shared {
    Shared(ServerObserver* observer, Monotonic::time_point arrived)
        : observer(observer), arrived(arrived), thread(std::this_thread::get_id()) {}

    // The work on a call has two parts: processing the report and making the answer, which often
    // happens during the first part. The part that ends last calls the observer.
    void TakenIn() {
      taken_in = true;
      Part(Monotonic::now() - arrived);
    }
    void Answered(Monotonic::time_point begin) {
      const bool within = !taken_in && std::this_thread::get_id() == thread;
      Part(within ? Monotonic::duration::zero() : Monotonic::now() - begin);
    }
    void Part(Monotonic::duration took) {
      handling_ns += std::chrono::nanoseconds(took).count();
      if (parts.fetch_add(1) == 1 && observer != nullptr) {
        observer->OnSynchronize(absl::Nanoseconds(handling_ns.load()));
      }
    }

    ServerObserver* const observer;
    const Monotonic::time_point arrived;
    const std::thread::id thread;  // the thread that processes the report
    std::atomic<bool> taken_in{false};
    std::atomic<int64_t> handling_ns{0};
    std::atomic<int> parts{0};
    std::atomic<bool> finished{false};
    std::atomic<bool> gone{false};
    std::atomic<uint64_t> token{0};
  };
  ~HeldCall() override = default;
  // A worker repeats its results until it is told that they are durable.
  void Observe(const fleet::SynchronizeReply& reply) {
    for (const std::string& lease_id : reply.durable) {
      if (auto it = outcomes_.find(lease_id); it != outcomes_.end())
        observer_->OnResult(it->second);
    }
  }

  fleet::Fleet* const fleet_;
  ServerObserver* const observer_;  // may be null
  std::map<std::string, record::Outcome> outcomes_;
  const std::shared_ptr<Shared> shared_;
  v1::SynchronizeResponse* const response_;
};

}  // namespace

grpc::ServerUnaryReactor* WorkerService::Synchronize(Context* context,
                                                     const v1::SynchronizeRequest* request,
                                                     v1::SynchronizeResponse* response,
                                                     Monotonic::time_point arrived) {
  const absl::Status ready = deps_.readiness->Check();
  absl::StatusOr<fleet::WorkerReport> report =
      ready.ok() ? FromProto(*request) : absl::StatusOr<fleet::WorkerReport>(ready);
  if (!report.ok()) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(rpc::ToGrpc(report.status()));
    return reactor;
  }
  report->identity = deps_.authenticator->NameOf(*context);
  auto* call = new HeldCall(deps_.fleet, deps_.observer, response, arrived);
  call->Start(*std::move(report));
  return call;
}

grpc::ServerReadReactor<v1::WorkerArtifactChunk>* WorkerService::UploadArtifact(
    Context* context, v1::UploadArtifactResponse* response) {
  const auto check = [](const std::string& name) {
    if (Digest::FromHex(name).ok() || record::IsReferenceName(name)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "digest: neither 32 hex digits nor the name of a reference kernel");
  };
  const auto keep = [this, response](const std::string& name, std::string bytes) {
    if (record::IsReferenceName(name)) {
      response->set_already_there(references_.Has(name));
      return references_.Put(name, std::move(bytes));
    }
    response->set_already_there(deps_.artifacts->Has(name));
    const absl::Status kept = deps_.artifacts->Put(name, std::move(bytes));
    if (kept.ok()) deps_.fleet->ArtifactArrived(name);
    return kept;
  };
  return new ArtifactReader<v1::WorkerArtifactChunk, v1::UploadArtifactResponse>(
      deps_, context, response, {.check = check, .keep = keep});
}

grpc::ServerWriteReactor<v1::WorkerArtifactChunk>* WorkerService::DownloadArtifact(
    Context* context, const v1::DownloadArtifactRequest* request) {
  context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const std::string& name = request->digest();
  return new ArtifactWriter<v1::WorkerArtifactChunk>(
      name, record::IsReferenceName(name) ? references_.Get(name) : FindArtifact(deps_, name),
      request->offset());
}

}  // namespace hone::service
