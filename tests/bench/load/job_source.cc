#include "tests/bench/load/job_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"

namespace hone::load {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(500);

// Returns one of a thousand distinct matmuls of at most 256³.
absl::StatusOr<std::string> WorkloadText(int64_t number) {
  HONE_ASSIGN_OR_RETURN(
      const ir::Workload workload,
      op::BuildWorkload("matmul", {absl::StrCat("m=", 128 + number % 128),
                                   absl::StrCat("n=", 128 + 16 * (number / 128 % 9)), "k=256"}));
  return workload.ToText();
}

}  // namespace

JobSource::JobSource(const std::shared_ptr<grpc::Channel>& channel, JobSourceOptions options)
    : options_(std::move(options)), stub_(v1::TuningService::NewStub(channel)) {}

absl::Status JobSource::Start() {
  {
    absl::MutexLock lock(&mutex_);
    for (int i = 0; i < options_.jobs; ++i) {
      HONE_RETURN_IF_ERROR(
          Create(options_.trials / 4 + 3 * options_.trials * i / (4 * options_.jobs)));
    }
  }
  thread_ = std::thread([this] { Watch(); });
  return absl::OkStatus();
}

void JobSource::Stop() {
  if (!thread_.joinable()) return;
  stop_.Notify();
  thread_.join();
}

absl::Status JobSource::Create(int64_t trials) {
  v1::CreateJobRequest request;
  HONE_ASSIGN_OR_RETURN(*request.mutable_workload(), WorkloadText(created_));
  request.set_request_id(absl::StrCat("load-", created_));
  request.set_target(options_.target);
  request.set_max_trials(trials);
  request.set_seed(static_cast<uint64_t>(created_));
  request.set_strategy(options_.strategy);
  request.set_cost_model(options_.cost_model);
  v1::Job job;
  grpc::ClientContext context;
  rpc::SetDeadline(context);
  HONE_RETURN_IF_ERROR(rpc::FromGrpc(stub_->CreateJob(&context, request, &job)));
  running_.push_back(job.id());
  ++created_;
  return absl::OkStatus();
}

void JobSource::Watch() {
  while (!stop_.WaitForNotificationWithTimeout(kInterval)) {
    absl::MutexLock lock(&mutex_);
    Replace();
  }
}

void JobSource::Replace() {
  for (std::string& id : running_) {
    if (stop_.HasBeenNotified()) return;
    v1::GetJobRequest request;
    request.set_id(id);
    v1::Job job;
    grpc::ClientContext context;
    rpc::SetDeadline(context);
    const absl::Status asked = rpc::FromGrpc(stub_->GetJob(&context, request, &job));
    if (!asked.ok()) failures_.push_back(std::string(asked.message()));
    if (job.state() < v1::JOB_STATE_DONE) continue;
    if (job.state() == v1::JOB_STATE_DONE) {
      ++done_;
    } else {
      failures_.push_back(absl::StrCat("job ", id, ": ", job.error()));
    }
    id.clear();
  }
  std::erase(running_, "");
  while (static_cast<int>(running_.size()) < options_.jobs && !stop_.HasBeenNotified()) {
    if (const absl::Status created = Create(options_.trials); !created.ok()) {
      failures_.push_back(std::string(created.message()));
      return;
    }
  }
}

int64_t JobSource::created() const {
  absl::MutexLock lock(&mutex_);
  return created_;
}

int64_t JobSource::done() const {
  absl::MutexLock lock(&mutex_);
  return done_;
}

std::vector<std::string> JobSource::failures() const {
  absl::MutexLock lock(&mutex_);
  return failures_;
}

}  // namespace hone::load
