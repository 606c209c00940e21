#include "tests/server/job/job_harness.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/record/given_inputs.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::job {

record::MeasureResult Took(double latency_ns) {
  record::MeasureResult result;
  result.latency_ns = latency_ns;
  result.samples_ns = {latency_ns};
  return result;
}

record::MeasureResult Timed(const fleet::LeaseGrant& lease) {
  return Took(FakeLatency(lease.work->decisions));
}

namespace {

std::string ArtifactCode(const fleet::WorkItem& work) {
  return absl::StrCat(work.space_digest, absl::StrJoin(work.decisions, ","));
}

}  // namespace

bool IsConfirmation(const fleet::LeaseGrant& lease) { return lease.work->policy.name == "confirm"; }

void FakeDevice::Step(fleet::Fleet& fleet, fleet::ArtifactCache& artifacts, int finish) {
  for (const std::string& digest : keep_) {
    auto found = artifacts_.find(digest);
    if (!uploads || found == artifacts_.end()) continue;
    ASSERT_THAT(artifacts.Put(digest, found->second), IsOk());
    fleet.ArtifactArrived(digest);
  }
  keep_.clear();
  for (auto it = held.begin(); it != held.end() && finish > 0; --finish) {
    const fleet::LeaseGrant& lease = it->second;
    record::MeasureResult result;
    if (lease.work->only_digest) {
      const std::string other = rebuild == nullptr ? "" : rebuild(lease);
      result.artifact_digest = Sha256Of(other.empty() ? ArtifactCode(*lease.work) : other);
      finished_[lease.lease_id] = std::move(result);
      it = held.erase(it);
      continue;
    }
    if (measure != nullptr) {
      result = measure(lease);
    } else {
      result.latency_ns = FakeLatency(lease.work->decisions);
      result.samples_ns = {result.latency_ns, result.latency_ns};
    }
    const std::string& given = lease.work->inputs_digest;
    result.inputs = given.empty() || ignores_given_inputs ? record::kSeededInputs : given;
    const std::string code = ArtifactCode(*lease.work);
    result.artifact_digest = Sha256Of(code);
    artifacts_[result.artifact_digest] = code;
    finished_[lease.lease_id] = std::move(result);
    it = held.erase(it);
  }
  fleet::WorkerReport report{.worker_id = id_, .epoch = epoch_};
  report.capabilities = {.host = "host",
                         .target = target,
                         .target_key = target_key,
                         .can_build = true,
                         .can_run = true,
                         .build_slots = 8,
                         .peak_gflops = 50};
  for (const auto& [id, lease] : held) report.held.push_back({id, fleet::LeasePhase::kBuilding});
  for (const auto& [id, result] : finished_) report.finished.push_back({id, result});
  report.free_build_slots = report.free_run_slots = 8 - static_cast<int>(held.size());
  fleet.Synchronize(std::move(report), [this](fleet::SynchronizeReply reply) {
    for (const fleet::LeaseGrant& lease : reply.start) {
      if (!held.emplace(lease.lease_id, lease).second) continue;
      (lease.work->only_digest ? rebuilt : seen).push_back(lease);
    }
    for (const std::string& id : reply.cancel) held.erase(id);
    for (const std::string& id : reply.durable) {
      finished_.erase(id);
      acknowledged.insert(id);
    }
    keep_.insert(keep_.end(), reply.keep_artifacts.begin(), reply.keep_artifacts.end());
  });
}

JobOptions JobHarness::DefaultOptions() {
  JobOptions options;
  options.respect_timing_lock = false;
  return options;
}

JobHarness::JobHarness(JobOptions given, fleet::FleetOptions of_fleet)
    : options(std::move(given)), fleet_options(std::move(of_fleet)) {
  Build();
}

void JobHarness::Build() {
  executor = std::make_unique<ManualExecutor>();
  artifacts = std::make_unique<fleet::ArtifactCache>();
  fleet = std::make_unique<fleet::Fleet>(&clock, artifacts.get(), fleet_options);
  jobs = std::make_unique<JobManager>(
      JobServices{.clock = &wall,
                  .steady_clock = &clock,
                  .store = &store,
                  .fleet = fleet.get(),
                  .artifacts = artifacts.get(),
                  .environment = &environment,
                  .executor = executor.get(),
                  .note_result = [this](const std::string& target) { ++noted[target]; }},
      options);
}

JobSpec JobHarness::Spec(int64_t trials, const std::string& request) {
  return {.request_id = request,
          .workload = "fake op 12",
          .requested_target = "t",
          .target_key = "t",
          .target = "target text",
          .max_trials = trials,
          .seed = 7,
          .strategy = "picky",
          .cost_model = "nearest"};
}

std::string JobHarness::Create(JobSpec spec) {
  std::string id;
  jobs->Create(std::move(spec), [&](SnapshotOr snapshot) {
    ASSERT_THAT(snapshot, IsOk());
    id = (*snapshot)->id;
  });
  return id;
}

std::string JobHarness::CreateAndConfirm(JobSpec spec, int steps) {
  std::string id;
  jobs->Create(std::move(spec), [&](const SnapshotOr& job) { id = job.ok() ? (*job)->id : ""; });
  store.Commit();
  if (id.empty()) {
    ADD_FAILURE() << "the job was not created";
    return id;
  }
  for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) {
    store.Commit();
    Step();
  }
  for (int i = 0; i < steps; ++i) {
    store.Commit();
    Step();
  }
  return id;
}

void JobHarness::Step(int finish) {
  executor->RunAll();
  if (!device_is_gone) device.Step(*fleet, *artifacts, finish);
  for (FakeDevice* other : others) other->Step(*fleet, *artifacts, finish);
  executor->RunAll();
  clock.Advance(absl::Milliseconds(100));
  wall.Advance(absl::Milliseconds(100));
  fleet->Tick();
  jobs->Tick();
  executor->RunAll();
}

std::shared_ptr<const JobSnapshot> JobHarness::RunToEnd(const std::string& id, int limit) {
  for (int i = 0; i < limit && !HasEnded(Get(id)->state); ++i) Step();
  return Get(id);
}

void JobHarness::Restart() {
  jobs->Suspend();
  store.Crash();
  fleet->Shutdown();
  executor->RunAll();
  jobs.reset();
  fleet.reset();
  Build();
  ASSERT_THAT(jobs->Restore(), IsOk());
}

}  // namespace hone::job
