#include "client/connection/api.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"

namespace hone::client {
namespace {

absl::Status CheckState(v1::JobState state, v1::JobState least) {
  if (v1::JobState_IsValid(state) && state >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job.state: ", static_cast<int>(state),
                                                 " is unknown; is the server newer than this "
                                                 "program?"));
}

}  // namespace

v1::LookupBestRequest BestQuery(const std::string& workload, const std::string& target,
                                double tolerance, bool nearest) {
  v1::LookupBestRequest request;
  request.set_workload(workload);
  request.set_target(target);
  request.set_tolerance(tolerance);
  request.set_nearest(nearest);
  return request;
}

absl::Status Check(const v1::Best& best) {
  HONE_RETURN_IF_ERROR(record::FromProto(best.record()).status());
  if (!best.has_nearest()) return absl::OkStatus();
  return record::FromProto(best.nearest().record()).status();
}

absl::Status Check(const v1::Job& job) {
  HONE_RETURN_IF_ERROR(CheckState(job.state(), v1::JOB_STATE_PENDING));
  if (job.has_best()) HONE_RETURN_IF_ERROR(Check(job.best()));
  if (job.has_default_schedule()) HONE_RETURN_IF_ERROR(Check(job.default_schedule()));
  if (job.has_given()) HONE_RETURN_IF_ERROR(Check(job.given()));
  if (job.has_own_best()) HONE_RETURN_IF_ERROR(Check(job.own_best()));
  for (const v1::NetworkTaskProgress& task : job.network().tasks()) {
    HONE_RETURN_IF_ERROR(CheckState(task.state(), v1::JOB_STATE_UNSPECIFIED));
  }
  return absl::OkStatus();
}

absl::Status Check(const v1::WorkerInfo& worker) {
  return record::FromProto(worker.facts()).status();
}

absl::Status Check(const v1::Explanation& explanation) {
  // A trace alone has no record.
  return explanation.best().has_record() ? Check(explanation.best()) : absl::OkStatus();
}

record::Record RecordOf(const v1::Best& best) { return record::FromProto(best.record()).value(); }

ir::MeasuredSpeed SpeedOf(const v1::Best& best) {
  return {
      .gflops = best.gflops(), .peak_gflops = best.peak_gflops(), .read_gbps = best.read_gbps()};
}

absl::string_view OutcomeName(v1::Outcome outcome) {
  return record::OutcomeName(record::FromProto(outcome).value());
}

std::string JobStateName(v1::JobState state) {
  if (state == v1::JOB_STATE_UNSPECIFIED) return "";
  return absl::AsciiStrToLower(absl::StripPrefix(v1::JobState_Name(state), "JOB_STATE_"));
}

absl::Duration TimeLeft(const v1::Job& job) {
  return job.has_left_ms() ? absl::Milliseconds(job.left_ms()) : absl::InfiniteDuration();
}

std::map<std::string, int64_t> OutcomesOf(const v1::Job& job) {
  return {job.outcomes().begin(), job.outcomes().end()};
}

bool BestIsWithdrawn(const v1::Job& job) {
  return job.best().confirmed() && job.best().record().quarantined();
}

bool BestIsOfAnotherJob(const v1::Job& job) {
  return job.has_best() && job.best().record().job_id() != job.id();
}

const v1::Best* BestFound(const v1::Job& job) {
  if (BestIsOfAnotherJob(job) && job.has_own_best()) return &job.own_best();
  return job.has_best() ? &job.best() : nullptr;
}

}  // namespace hone::client
