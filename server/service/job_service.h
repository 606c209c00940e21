#ifndef HONE_SERVER_SERVICE_JOB_SERVICE_H_
#define HONE_SERVER_SERVICE_JOB_SERVICE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/role.h"
#include "hone/v1/tuning.pb.h"
#include "server/service/handler.h"

namespace hone::service {

// The calls about jobs. Thread-safe. Errors are those of tuning.proto.
class JobService {
 public:
  explicit JobService(const Dependencies& deps) : deps_(deps) {}

  void CreateJob(Context*, const v1::CreateJobRequest*, v1::Job*, Reply);
  void DraftSchedule(Context*, const v1::DraftScheduleRequest*, v1::DraftedSchedule*, Reply);
  void GetJob(Context*, const v1::GetJobRequest*, v1::Job*, Reply);
  grpc::ServerWriteReactor<v1::Job>* WatchJob(const rpc::Identity&, Context*,
                                              const v1::GetJobRequest*);
  absl::Status CancelJob(const rpc::Identity&, const v1::CancelJobRequest&, v1::Job*);
  absl::Status ListJobs(const v1::ListJobsRequest&, v1::ListJobsResponse*);
  void ResumeJob(const rpc::Identity&, const v1::ResumeJobRequest*, v1::Job*, Reply);
  void Propose(Context*, const v1::ProposeRequest*, v1::ProposeResponse*, Reply);
  absl::Status ListTrials(const v1::ListTrialsRequest&, v1::ListTrialsResponse*);

 private:
  // As ToSpec; also reads the text of a workload that the request names by its digest.
  absl::StatusOr<job::JobSpec> ReadSpec(const v1::CreateJobRequest& request) const;
  // PermissionDenied: the job is of another caller, and this one is no administrator. NotFound:
  // unknown job.
  absl::Status CheckMayControl(const rpc::Identity& caller, const std::string& id) const;
  absl::Status Fill(const job::SnapshotOr& snapshot, v1::Job* response) const;

  const Dependencies& deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_JOB_SERVICE_H_
