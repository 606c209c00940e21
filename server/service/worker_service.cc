#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/record/proto_convert.h"
#include "common/record/reference_name.h"
#include "common/rpc/status.h"
#include "common/target/target.h"
#include "server/service/artifact_stream.h"
#include "server/service/job_convert.h"
#include "server/service/services.h"

namespace hone::service {
namespace {

constexpr size_t kMaxIsas = 32;
constexpr size_t kKnownTargets = 256;

// Returns the key of a target text; "" if the text is malformed. Workers send the same texts in
// every call, so the keys are cached.
std::string KeyOfTarget(const std::string& text) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto& known = *new absl::flat_hash_map<std::string, std::string>();
  {
    absl::ReaderMutexLock lock(&mutex);
    if (auto found = known.find(text); found != known.end()) return found->second;
  }
  const absl::StatusOr<target::Target> target = target::Target::FromText(text);
  if (!target.ok()) return "";
  std::string key = target->Key();
  absl::MutexLock lock(&mutex);
  if (known.size() >= kKnownTargets) known.clear();
  known[text] = key;
  return key;
}

// Checks that a reference kernel is of the workload and the target that its name says.
absl::Status CheckReference(const std::string& name, const std::string& bytes) {
  HONE_ASSIGN_OR_RETURN(const record::ReferenceName wanted, record::ParseReferenceName(name));
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, record::DecodeArtifact(bytes));
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(artifact.workload));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(artifact.target));
  const record::ReferenceName is{workload.StructuralDigest().ToHex(), target.Key()};
  if (is == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it is ", is.ToText(), ", not ", name));
}

absl::Status CheckId(absl::string_view field, const std::string& id) {
  if (id.empty()) return FieldError(field, "missing");
  return CheckLength(field, id);
}

absl::StatusOr<fleet::Capabilities> FromProto(const v1::Capabilities& message) {
  fleet::Capabilities can{.host = message.host(),
                          .target = message.target(),
                          .target_key = message.target_key(),
                          .can_build = message.can_build(),
                          .can_run = message.can_run(),
                          .build_slots = message.build_slots(),
                          .peak_gflops = message.peak_gflops(),
                          .peak_gflops_one_core = message.peak_gflops_one_core(),
                          .read_gbps = message.read_gbps(),
                          .memory_bytes = message.memory_bytes(),
                          .accelerator = message.accelerator(),
                          .build_isas = {message.build_isas().begin(), message.build_isas().end()}};
  if (can.can_run) {
    HONE_RETURN_IF_ERROR(CheckId("capabilities.target_key", can.target_key));
    if (can.target.empty()) return FieldError("capabilities.target", "missing");
  }
  HONE_RETURN_IF_ERROR(CheckLength("capabilities.host", can.host));
  if (can.target.size() > kMaxTargetBytes) return FieldError("capabilities.target", "too long");
  HONE_RETURN_IF_ERROR(CheckLength("capabilities.target_key", can.target_key));
  const std::string key = KeyOfTarget(can.target);
  if (!key.empty() && key != can.target_key) {
    return FieldError("capabilities.target_key",
                      absl::StrCat("not the key of its target, which is ", key));
  }
  if (can.build_slots < 0 || can.build_slots > kMaxSlots) {
    return FieldError("capabilities.build_slots", "out of range");
  }
  for (const double rate : {can.peak_gflops, can.peak_gflops_one_core, can.read_gbps}) {
    if (!std::isfinite(rate) || rate < 0) {
      return FieldError("capabilities.peak_gflops and read_gbps",
                        "must be finite and not negative");
    }
  }
  if (can.memory_bytes < 0) return FieldError("capabilities.memory_bytes", "negative");
  HONE_RETURN_IF_ERROR(CheckLength("capabilities.accelerator", can.accelerator));
  if (can.build_isas.size() > kMaxIsas) return FieldError("capabilities.build_isas", "too many");
  for (const std::string& isa : can.build_isas) {
    HONE_RETURN_IF_ERROR(CheckId("capabilities.build_isas", isa));
  }
  HONE_ASSIGN_OR_RETURN(can.environment, record::FromProto(message.environment()));
  return can;
}

using Monotonic = std::chrono::steady_clock;

// A call of Synchronize while the fleet holds it. Either the fleet's answer or the end of
// the connection finishes it, whichever comes first; the reactor lives until then.
class HeldCall final : public grpc::ServerUnaryReactor {
 public:
  HeldCall(fleet::Fleet* fleet, ServerObserver* observer, v1::SynchronizeResponse* response,
           Monotonic::time_point arrived)
      : fleet_(fleet),
        observer_(observer),
        shared_(std::make_shared<Shared>(arrived)),
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
          *response_ = service::ToProto(reply);
          if (observer_ != nullptr) Observe(reply, begin);
          Finish(grpc::Status::OK);
        });
    // The reactor may be deleted from here on.
    shared->taken_in = Monotonic::now() - shared->arrived;
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
    explicit Shared(Monotonic::time_point arrived) : arrived(arrived) {}

    const Monotonic::time_point arrived;
    // How long it took to process the report; zero until that is done.
    std::atomic<Monotonic::duration> taken_in{Monotonic::duration::zero()};
    std::atomic<bool> finished{false};
    std::atomic<bool> gone{false};
    std::atomic<uint64_t> token{0};
  };
  ~HeldCall() override = default;
  // `begin`: when the fleet began to answer, which it mostly does while it processes the report.
  void Observe(const fleet::SynchronizeReply& reply, Monotonic::time_point begin) {
    // A worker repeats its results until it is told that they are durable.
    for (const std::string& lease_id : reply.durable) {
      if (auto it = outcomes_.find(lease_id); it != outcomes_.end())
        observer_->OnResult(it->second);
    }
    const Monotonic::duration taken_in = shared_->taken_in;
    const bool was_held = taken_in != Monotonic::duration::zero();
    const Monotonic::time_point now = Monotonic::now();
    observer_->OnSynchronize(
        absl::FromChrono(was_held ? taken_in + (now - begin) : now - shared_->arrived));
  }

  fleet::Fleet* const fleet_;
  ServerObserver* const observer_;  // may be null
  std::map<std::string, record::Outcome> outcomes_;
  const std::shared_ptr<Shared> shared_;
  v1::SynchronizeResponse* const response_;
};

// Ends the call once the worker's standing is durable.
void FinishWhenKept(StandingKeeper& keeper, const std::string& worker_id, Reply reply) {
  keeper.Keep(worker_id, [reply](absl::Status kept) {
    if (!kept.ok()) {
      kept = absl::Status(kept.code(),
                          absl::StrCat("the change is in effect but not stored yet; the server "
                                       "tries again, and a restart before that loses it: ",
                                       kept.message()));
    }
    reply(kept);
  });
}

}  // namespace

absl::StatusOr<fleet::WorkerReport> FromProto(const v1::SynchronizeRequest& request) {
  HONE_RETURN_IF_ERROR(CheckId("worker_id", request.worker_id()));
  HONE_RETURN_IF_ERROR(CheckId("epoch", request.epoch()));
  if (request.held_size() > kMaxLeasesPerWorker) return FieldError("held", "too many");
  if (request.finished_size() > kMaxLeasesPerWorker) return FieldError("finished", "too many");
  if (request.free_build_slots() < 0 || request.free_build_slots() > kMaxSlots) {
    return FieldError("free_build_slots", "out of range");
  }
  if (request.free_run_slots() < 0 || request.free_run_slots() > kMaxSlots) {
    return FieldError("free_run_slots", "out of range");
  }
  if (request.max_wait_ms() < 0) return FieldError("max_wait_ms", "negative");
  fleet::WorkerReport report{.worker_id = request.worker_id(),
                             .epoch = request.epoch(),
                             .free_build_slots = request.free_build_slots(),
                             .free_run_slots = request.free_run_slots(),
                             .max_wait = absl::Milliseconds(request.max_wait_ms()),
                             .draining = request.draining()};
  HONE_ASSIGN_OR_RETURN(report.capabilities, FromProto(request.capabilities()));
  for (const v1::HeldLease& held : request.held()) {
    HONE_RETURN_IF_ERROR(CheckId("held.lease_id", held.lease_id()));
    if (held.phase() < v1::LEASE_PHASE_QUEUED || held.phase() > v1::LEASE_PHASE_RUNNING) {
      return FieldError("held.phase", "unknown");
    }
    report.held.push_back({held.lease_id(), static_cast<fleet::LeasePhase>(held.phase())});
  }
  for (const v1::FinishedLease& finished : request.finished()) {
    HONE_RETURN_IF_ERROR(CheckId("finished.lease_id", finished.lease_id()));
    fleet::FinishedLease& lease = report.finished.emplace_back();
    lease.lease_id = finished.lease_id();
    // A malformed result does not affect the others. The fleet refuses it and flags the worker.
    absl::StatusOr<record::MeasureResult> result = record::FromProto(finished.result());
    if (result.ok()) {
      lease.result = *std::move(result);
    } else {
      lease.malformed = std::string(result.status().message());
    }
  }
  return report;
}

v1::SynchronizeResponse ToProto(const fleet::SynchronizeReply& reply) {
  v1::SynchronizeResponse response;
  for (const fleet::LeaseGrant& grant : reply.start) {
    const fleet::WorkItem& work = *grant.work;
    v1::Lease& lease = *response.add_start();
    lease.set_lease_id(grant.lease_id);
    lease.set_build(grant.build);
    lease.set_run(grant.run);
    lease.set_deadline_ms(absl::ToInt64Milliseconds(grant.limit));
    lease.set_workload(work.workload);
    lease.set_workload_digest(work.workload_digest);
    lease.set_space_digest(work.space_digest);
    if (grant.build) lease.set_space(work.space);
    lease.mutable_decisions()->Assign(work.decisions.begin(), work.decisions.end());
    lease.set_target(work.target);
    lease.set_artifact_digest(grant.artifact_digest);
    *lease.mutable_policy() = record::ToProto(work.policy);
    lease.set_tolerance(work.tolerance);
    lease.set_best_latency_ns(grant.best_latency_ns);
    lease.set_job_id(work.job_id);
    lease.set_priority(work.priority);
    lease.set_inputs_digest(work.inputs_digest);
    lease.set_only_digest(work.only_digest);
  }
  for (const std::string& id : reply.cancel) response.add_cancel(id);
  for (const std::string& id : reply.durable) response.add_durable(id);
  for (const std::string& id : reply.stored) response.add_stored(id);
  response.set_next_call_ms(absl::ToInt64Milliseconds(reply.next_call));
  for (const std::string& digest : reply.keep_artifacts) response.add_keep_artifacts(digest);
  response.set_drain(reply.drain);
  response.set_refused(reply.refused);
  response.set_heartbeat_ms(absl::ToInt64Milliseconds(reply.heartbeat));
  response.set_gather_ms(absl::ToInt64Milliseconds(reply.gather));
  return response;
}

grpc::ServerUnaryReactor* WorkerService::Synchronize(const Call& call,
                                                     const v1::SynchronizeRequest* request,
                                                     v1::SynchronizeResponse* response) {
  absl::StatusOr<fleet::WorkerReport> report = FromProto(*request);
  if (!report.ok()) {
    grpc::ServerUnaryReactor* reactor = call.context->DefaultReactor();
    reactor->Finish(rpc::ToGrpc(report.status()));
    return reactor;
  }
  report->identity = call.caller.name;
  auto* held = new HeldCall(deps_.fleet, deps_.observer, response, call.arrived);
  held->Start(*std::move(report));
  return held;
}

grpc::ServerReadReactor<v1::WorkerArtifactChunk>* WorkerService::UploadArtifact(
    const Call& call, v1::UploadArtifactResponse* response) {
  const auto check = [](const std::string& name) {
    if (IsSha256(name) || record::IsReferenceName(name)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "digest: neither 64 hex digits nor the name of a reference kernel");
  };
  const auto keep = [this, caller = call.caller.name, response](
                        const std::string& name, std::string bytes, const auto& done) {
    if (record::IsReferenceName(name)) {
      // Boards run this code, so that only the builder of their candidates may send it.
      const absl::StatusOr<record::ReferenceName> parsed = record::ParseReferenceName(name);
      if (!parsed.ok()) return done(parsed.status());
      if (!deps_.fleet->HasBuildLease(caller, parsed->workload_digest, parsed->target_key)) {
        return done(absl::FailedPreconditionError(absl::StrCat(
            name, ": this worker holds no lease to build a candidate of that workload")));
      }
      response->set_already_there(references_.Has(name));
      const absl::Status is_right = CheckReference(name, bytes);
      if (is_right.ok()) references_.Put(name, std::move(bytes));
      return done(is_right);
    }
    response->set_already_there(deps_.artifacts->Has(name));
    const absl::Status kept = deps_.artifacts->Put(name, std::move(bytes));
    if (kept.ok()) deps_.fleet->ArtifactArrived(name);
    done(kept);
  };
  return new ArtifactReader<v1::WorkerArtifactChunk, v1::UploadArtifactResponse>(
      deps_, call.context, response, {.check = check, .keep = keep});
}

grpc::ServerWriteReactor<v1::WorkerArtifactChunk>* WorkerService::DownloadArtifact(
    const Call& call, const v1::DownloadArtifactRequest* request) {
  using Chunk = v1::WorkerArtifactChunk;
  const std::string& name = request->digest();
  if (!record::IsReferenceName(name)) {
    return SendArtifact<Chunk>(deps_, call, name, request->offset(), request->deflate());
  }
  auto* writer =
      new ArtifactWriter<Chunk>(deps_, call.context, request->offset(), request->deflate());
  std::shared_ptr<const std::string> reference = references_.Get(name);
  if (reference != nullptr) {
    writer->Send(name, std::move(reference));
  } else {
    writer->Send(name,
                 absl::NotFoundError("no builder has sent the reference of this workload yet"));
  }
  return writer;
}

absl::Status FleetService::ListWorkers(const Call&, const v1::ListWorkersRequest& request,
                                       v1::ListWorkersResponse* response) {
  HONE_RETURN_IF_ERROR(CheckPageToken(request.page_token()));
  HONE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size()));
  for (const fleet::WorkerInfo& worker :
       deps_.worker_memory->WithAbsent(deps_.fleet->KnownWorkers())) {  // by id
    if (worker.id <= request.page_token()) continue;
    if (response->workers_size() == page_size) {
      response->set_next_page_token(response->workers(page_size - 1).id());
      break;
    }
    *response->add_workers() = ToProto(worker, deps_.clock->Now());
  }
  return absl::OkStatus();
}

void FleetService::DrainWorker(const Call&, const v1::DrainWorkerRequest* request,
                               v1::WorkerInfo* response, Reply reply) {
  const absl::StatusOr<fleet::WorkerInfo> worker =
      deps_.fleet->Drain(request->id(), request->resume());
  if (!worker.ok()) return reply(worker.status());
  *response = ToProto(*worker, deps_.clock->Now());
  FinishWhenKept(*deps_.standings, request->id(), reply);
}

void FleetService::RemoveWorker(const Call&, const v1::RemoveWorkerRequest* request,
                                v1::RemoveWorkerResponse* response, Reply reply) {
  // It stays in the list until it is resumed and calls again.
  deps_.worker_memory->Keep(request->id());
  const absl::StatusOr<int> requeued =
      deps_.fleet->Remove(request->id(), deps_.worker_memory->IdentityOf(request->id()));
  if (!requeued.ok()) return reply(requeued.status());
  response->set_requeued(*requeued);
  FinishWhenKept(*deps_.standings, request->id(), reply);
}

}  // namespace hone::service
