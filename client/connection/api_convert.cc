#include "client/connection/api_convert.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"

namespace hone::client {
namespace {

JobSpec ToJobSpec(const v1::CreateJobRequest& request) {
  JobSpec spec;
  spec.workload = request.workload();
  spec.target = request.target();
  spec.max_trials = request.max_trials();
  spec.max_time_ms = request.max_time_ms();
  spec.seed = request.seed();
  spec.strategy = request.strategy();
  spec.cost_model = request.cost_model();
  spec.tolerance = request.tolerance();
  spec.space = request.space();
  spec.feature_set = request.feature_set();
  spec.transfer = request.transfer();
  spec.revalidate = request.revalidate();
  spec.priority = request.priority();
  spec.unpublished = request.unpublished();
  spec.inputs_digest = request.inputs_digest();
  return spec;
}

}  // namespace

absl::StatusOr<JobState> FromProto(v1::JobState state) {
  if (state < v1::JOB_STATE_PENDING || state > v1::JOB_STATE_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrCat("job.state: ", static_cast<int>(state),
                     " is unknown; is the server newer than this program?"));
  }
  return static_cast<JobState>(state);
}

absl::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kPending:
      return "pending";
    case JobState::kRunning:
      return "running";
    case JobState::kConfirming:
      return "confirming";
    case JobState::kDone:
      return "done";
    case JobState::kCancelled:
      return "cancelled";
    case JobState::kFailed:
      return "failed";
  }
  return "unknown";
}

v1::CreateJobRequest ToProto(const JobSpec& spec, const std::string& request_id) {
  v1::CreateJobRequest request;
  request.set_request_id(request_id);
  request.set_workload(spec.workload);
  request.set_workload_digest(spec.workload_digest);
  request.set_target(spec.target);
  request.set_max_trials(spec.max_trials);
  request.set_max_time_ms(spec.max_time_ms);
  request.set_seed(spec.seed);
  request.set_strategy(spec.strategy);
  request.set_cost_model(spec.cost_model);
  request.set_tolerance(spec.tolerance);
  request.set_space(spec.space);
  request.set_feature_set(spec.feature_set);
  request.set_transfer(spec.transfer);
  request.set_revalidate(spec.revalidate);
  request.set_priority(spec.priority);
  request.set_unpublished(spec.unpublished);
  request.set_inputs_digest(spec.inputs_digest);
  return request;
}

v1::LookupBestRequest ToProto(const BestQuery& query) {
  v1::LookupBestRequest request;
  request.set_workload(query.workload);
  request.set_target(query.target);
  request.set_tolerance(query.tolerance);
  request.set_nearest(query.nearest);
  return request;
}

absl::StatusOr<Best> FromProto(const v1::Best& message) {
  Best best;
  HONE_ASSIGN_OR_RETURN(best.record, record::FromProto(message.record()));
  best.workload = message.workload();
  best.trace = message.trace();
  best.gflops = message.gflops();
  best.peak_gflops = message.peak_gflops();
  best.read_gbps = message.read_gbps();
  best.pinned_unix_ms = message.pinned_unix_ms();
  best.pinned_by = message.pinned_by();
  if (message.has_nearest()) {
    const v1::Nearest& from = message.nearest();
    Nearest& nearest = best.nearest.emplace();
    nearest.workload = from.workload();
    nearest.distance = from.distance();
    HONE_ASSIGN_OR_RETURN(nearest.record, record::FromProto(from.record()));
    nearest.gflops = from.gflops();
  }
  return best;
}

absl::StatusOr<Job> FromProto(const v1::Job& message) {
  Job job;
  job.id = message.id();
  HONE_ASSIGN_OR_RETURN(job.state, FromProto(message.state()));
  job.error = message.error();
  job.workload = message.workload();
  job.workload_digest = message.workload_digest();
  job.target = message.target();
  job.spec = ToJobSpec(message.request());
  job.trials = message.trials();
  for (const auto& [name, count] : message.outcomes()) job.outcomes[name] = count;
  job.dropped = message.dropped();
  job.quarantined = message.quarantined();
  job.created_unix_ms = message.created_unix_ms();
  job.wall_ms = message.wall_ms();
  job.after_cancel_ms = message.after_cancel_ms();
  if (message.has_best()) {
    HONE_ASSIGN_OR_RETURN(job.best, FromProto(message.best()));
  }
  if (message.has_default_schedule()) {
    HONE_ASSIGN_OR_RETURN(job.default_schedule, FromProto(message.default_schedule()));
  }
  if (message.has_given()) {
    HONE_ASSIGN_OR_RETURN(job.given, FromProto(message.given()));
  }
  if (message.has_own_best()) {
    HONE_ASSIGN_OR_RETURN(job.own_best, FromProto(message.own_best()));
  }
  job.disturbed = message.disturbed();
  job.disturbance = message.disturbance();
  if (message.has_left_ms()) job.left = absl::Milliseconds(message.left_ms());
  job.wait_reason = message.wait_reason();
  job.queued = message.queued();
  job.phase = message.phase();
  job.note = message.note();
  job.owner = message.owner();
  if (message.has_network()) {
    HONE_ASSIGN_OR_RETURN(job.network, FromProto(message.network()));
  }
  return job;
}

absl::StatusOr<v1::WorkerInfo> FromProto(const v1::WorkerInfo& worker) {
  HONE_RETURN_IF_ERROR(record::FromProto(worker.facts()).status());
  return worker;
}

}  // namespace hone::client
