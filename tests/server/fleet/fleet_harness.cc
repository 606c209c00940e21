#include "tests/server/fleet/fleet_harness.h"

#include <algorithm>

namespace hone::fleet {

FakeWorker FakeWorker::Both(const std::string& id, int slots) {
  FakeWorker worker;
  worker.report.worker_id = id;
  worker.report.epoch = id + "-1";
  worker.report.capabilities = {.host = "host",
                                .target = "target text",
                                .target_key = "t",
                                .can_build = true,
                                .can_run = true,
                                .build_slots = slots};
  worker.report.free_build_slots = worker.report.free_run_slots = slots;
  return worker;
}

uint64_t FakeWorker::Call(Fleet& fleet, absl::Duration max_wait) {
  report.max_wait = max_wait;
  reply.reset();
  return fleet.Synchronize(report, [this](SynchronizeReply answer) {
    for (const LeaseGrant& lease : answer.start) {
      started.push_back(lease);
      report.held.push_back({lease.lease_id, LeasePhase::kQueued});
      --(lease.build ? report.free_build_slots : report.free_run_slots);
    }
    for (const std::string& id : answer.cancel) {
      cancelled.push_back(id);
      std::erase_if(report.held, [&](const HeldLease& held) { return held.lease_id == id; });
      GiveSlotBack(id);
    }
    for (const std::string& id : answer.durable) {
      durable.push_back(id);
      std::erase_if(report.finished, [&](const FinishedLease& f) { return f.lease_id == id; });
    }
    reply = std::move(answer);
  });
}

void FakeWorker::SetPhase(const std::string& lease_id, LeasePhase phase) {
  for (HeldLease& held : report.held) {
    if (held.lease_id == lease_id) held.phase = phase;
  }
}

void FakeWorker::Finish(std::string lease_id, record::MeasureResult result) {
  std::erase_if(report.held, [&](const HeldLease& held) { return held.lease_id == lease_id; });
  report.finished.push_back({lease_id, std::move(result)});
  GiveSlotBack(lease_id);
}

void FakeWorker::GiveSlotBack(const std::string& lease_id) {
  for (const LeaseGrant& lease : started) {
    if (lease.lease_id != lease_id) continue;
    ++(lease.build ? report.free_build_slots : report.free_run_slots);
    return;
  }
}

void FakeWorker::Restart(const std::string& epoch) {
  report.epoch = epoch;
  report.held.clear();
  report.finished.clear();
  report.free_build_slots = report.free_run_slots = report.capabilities.build_slots;
  started.clear();
}

record::MeasureResult Measured(double latency_ns, const std::string& artifact) {
  record::MeasureResult result;
  result.latency_ns = latency_ns;
  result.samples_ns = {latency_ns};
  result.artifact_digest = artifact;
  return result;
}

WorkItem Harness::Item(const std::string& job, int64_t candidate) {
  return {.job_id = job,
          .workload = "workload",
          .space = "space",
          .space_digest = "digest",
          .decisions = {candidate},
          .target = "target text",
          .target_key = "t"};
}

std::shared_ptr<Answer> Harness::Submit(WorkItem item) {
  auto answer = std::make_shared<Answer>();
  fleet.Submit(std::move(item),
               [answer](absl::StatusOr<WorkResult> result, Acknowledge acknowledge) {
                 answer->called = true;
                 answer->result = std::move(result);
                 answer->acknowledge = std::move(acknowledge);
               });
  return answer;
}

}  // namespace hone::fleet
