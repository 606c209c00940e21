#include "server/service/worker_convert.h"

#include <cmath>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"
#include "common/target/target.h"
#include "server/service/field_error.h"
#include "server/service/job_convert.h"

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

absl::Status CheckId(absl::string_view field, const std::string& id) {
  if (id.empty()) return FieldError(field, "missing");
  if (id.size() > kMaxIdBytes) return FieldError(field, "too long");
  return absl::OkStatus();
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
  if (can.host.size() > kMaxIdBytes) return FieldError("capabilities.host", "too long");
  if (can.target.size() > kMaxTargetBytes) return FieldError("capabilities.target", "too long");
  if (can.target_key.size() > kMaxIdBytes) return FieldError("capabilities.target_key", "too long");
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
  if (can.accelerator.size() > kMaxIdBytes)
    return FieldError("capabilities.accelerator", "too long");
  if (can.build_isas.size() > kMaxIsas) return FieldError("capabilities.build_isas", "too many");
  for (const std::string& isa : can.build_isas) {
    HONE_RETURN_IF_ERROR(CheckId("capabilities.build_isas", isa));
  }
  HONE_ASSIGN_OR_RETURN(can.environment, record::FromProto(message.environment()));
  return can;
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
  }
  for (const std::string& id : reply.cancel) response.add_cancel(id);
  for (const std::string& id : reply.durable) response.add_durable(id);
  response.set_next_call_ms(absl::ToInt64Milliseconds(reply.next_call));
  for (const std::string& digest : reply.keep_artifacts) response.add_keep_artifacts(digest);
  response.set_drain(reply.drain);
  response.set_refused(reply.refused);
  response.set_heartbeat_ms(absl::ToInt64Milliseconds(reply.heartbeat));
  response.set_gather_ms(absl::ToInt64Milliseconds(reply.gather));
  return response;
}

}  // namespace hone::service
