#include "tests/server/service/service_harness.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/record/given_inputs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "server/store/read_limit.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/status.h"

namespace hone::service {

using ::testing::AnyOf;

v1::SynchronizeRequest RemoteWorker::Hello(const std::string& id) {
  v1::SynchronizeRequest request;
  request.set_worker_id(id);
  request.set_epoch(absl::StrCat(id, " ", absl::ToUnixNanos(absl::Now())));
  v1::Capabilities& can = *request.mutable_capabilities();
  can.set_host("host");
  can.set_target("target text");
  can.set_target_key("t");
  can.set_can_build(true);
  can.set_can_run(true);
  can.set_build_slots(8);
  can.set_peak_gflops(50);
  can.mutable_environment()->set_cpu("fake cpu");
  return request;
}

RemoteWorker::RemoteWorker(std::shared_ptr<grpc::Channel> channel, std::string id)
    : stub_(v1::WorkerService::NewStub(std::move(channel))),
      id_(std::move(id)),
      thread_([this] { Run(); }) {}

RemoteWorker::~RemoteWorker() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  thread_.join();
}

absl::Status RemoteWorker::Upload(const std::string& digest) {
  auto found = artifacts_.find(digest);
  if (found == artifacts_.end()) return absl::NotFoundError(digest);
  grpc::ClientContext context;
  v1::UploadArtifactResponse response;
  auto writer = stub_->UploadArtifact(&context, &response);
  v1::WorkerArtifactChunk chunk;
  chunk.set_digest(digest);
  chunk.set_total_bytes(static_cast<int64_t>(found->second.size()));
  chunk.set_data(found->second);
  writer->Write(chunk);
  writer->WritesDone();
  return rpc::FromGrpc(writer->Finish());
}

void RemoteWorker::Run() {
  v1::SynchronizeRequest request = Hello(id_);
  std::map<std::string, v1::Lease> held;
  std::map<std::string, v1::FinishedLease> finished;
  int measured = 0;
  while (true) {
    request.clear_held();
    request.clear_finished();
    for (const auto& [id, lease] : held) {
      v1::HeldLease& entry = *request.add_held();
      entry.set_lease_id(id);
      entry.set_phase(v1::LEASE_PHASE_BUILDING);
    }
    for (const auto& [id, entry] : finished) *request.add_finished() = entry;
    request.set_free_build_slots(8 - static_cast<int>(held.size()));
    request.set_free_run_slots(8 - static_cast<int>(held.size()));
    request.set_max_wait_ms(held.empty() ? 5000 : 10);
    grpc::ClientContext context;
    {
      absl::MutexLock lock(&mutex_);
      if (stop_) return;
      context_ = &context;
    }
    v1::SynchronizeResponse response;
    const grpc::Status status = stub_->Synchronize(&context, request, &response);
    {
      absl::MutexLock lock(&mutex_);
      context_ = nullptr;
      if (stop_) return;
    }
    if (!status.ok()) {
      absl::SleepFor(absl::Milliseconds(5));
      continue;
    }
    for (const std::string& id : response.durable()) finished.erase(id);
    for (const std::string& id : response.cancel()) held.erase(id);
    for (const std::string& digest : response.keep_artifacts()) {
      // The server may end meanwhile.
      EXPECT_THAT(Upload(digest), AnyOf(IsOk(), StatusIs(absl::StatusCode::kUnavailable),
                                        StatusIs(absl::StatusCode::kCancelled)))
          << digest;
    }
    for (const v1::Lease& lease : response.start()) held.emplace(lease.lease_id(), lease);
    if (slow) continue;
    for (const auto& [id, lease] : held) {
      const std::vector<int64_t> decisions(lease.decisions().begin(), lease.decisions().end());
      const std::string code =
          absl::StrCat("code ", lease.space_digest(), absl::StrJoin(decisions, ","));
      v1::FinishedLease& entry = finished[id];
      entry.set_lease_id(id);
      v1::MeasureResult& result = *entry.mutable_result();
      result.set_outcome(v1::OUTCOME_OK);
      // No two latencies are equal, so that an import never takes one measurement for another.
      const double deviation = 1e-6 * ++measured;
      result.set_latency_ns(job::FakeLatency(decisions) + deviation);
      result.add_samples_ns(result.latency_ns());
      result.add_samples_ns(result.latency_ns() - deviation);
      result.add_samples_ns(result.latency_ns() + deviation);
      result.set_artifact_digest(Sha256Of(code));
      result.set_inputs(lease.inputs_digest().empty() ? record::kSeededInputs
                                                      : lease.inputs_digest());
      artifacts_[result.artifact_digest()] = code;
    }
    held.clear();
  }
}

ServiceHarness::ServiceHarness() { address.path = folder + "/s"; }

ServiceHarness::~ServiceHarness() { Stop(); }

absl::Status ServiceHarness::Start(ServerOptions options) {
  auto store = store::OpenSqliteStore(folder + "/hone.db");
  if (!store.ok()) return store.status();
  return StartWith(*std::move(store), std::move(options));
}

absl::Status ServiceHarness::StartWith(std::unique_ptr<store::Store> store, ServerOptions options,
                                       std::unique_ptr<job::TaskEnvironment> environment) {
  if (environment == nullptr) environment = std::make_unique<job::FakeTaskEnvironment>();
  options.listen.insert(options.listen.begin(), {address});
  options.job.respect_timing_lock = false;
  auto started = Server::Start(std::move(options), std::move(store), std::move(environment));
  if (!started.ok()) return started.status();
  server = *std::move(started);
  channel = Connect();
  tuning = v1::TuningService::NewStub(channel);
  working = v1::WorkerService::NewStub(channel);
  return absl::OkStatus();
}

void ServiceHarness::Stop() {
  server.reset();
  EXPECT_EQ(store::NoReads::count(), 0) << "see the server's log";
}

std::shared_ptr<grpc::Channel> ServiceHarness::Connect() {
  return *rpc::CreateChannel(address.ToText(), {});
}

v1::CreateJobRequest ServiceHarness::Request(int64_t trials, const std::string& request_id) {
  v1::CreateJobRequest request;
  request.set_request_id(request_id);
  request.set_workload("fake op 12");
  request.set_target("native");
  request.set_max_trials(trials);
  request.set_seed(1);
  return request;
}

v1::LookupBestRequest ServiceHarness::BestOf(const std::string& workload) {
  v1::LookupBestRequest request;
  request.set_workload(workload);
  request.set_target("t");
  return request;
}

grpc::Status ServiceHarness::Create(const v1::CreateJobRequest& request) {
  v1::Job job;
  return Call(*tuning, &v1::TuningService::Stub::CreateJob, request, &job);
}

v1::GetJobRequest ServiceHarness::JobOf(const std::string& id) {
  v1::GetJobRequest request;
  request.set_id(id);
  return request;
}

int64_t ServiceHarness::Metric(const std::string& name, const std::string& value) {
  for (const ServerMetric& metric : server->Metrics()) {
    if (metric.name == name) return metric.values.at(value);
  }
  ADD_FAILURE() << "there is no metric " << name;
  return -1;
}

absl::Status ServiceHarness::Raw(const std::shared_ptr<grpc::Channel>& channel,
                                 const std::string& method, const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  rpc::SetDeadline(context, absl::Minutes(1));
  grpc::CompletionQueue queue;
  grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1), response;
  auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&response, &status, &context);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return rpc::FromGrpc(status);
}

v1::Job ServiceHarness::WaitForEnd(const std::string& id) {
  v1::Job job;
  EXPECT_TRUE(Eventually([&] {
    v1::GetJobRequest request;
    request.set_id(id);
    const grpc::Status status = Call(*tuning, &v1::TuningService::Stub::GetJob, request, &job);
    return status.ok() && job.state() >= v1::JOB_STATE_DONE;
  })) << job.DebugString();
  return job;
}

}  // namespace hone::service
