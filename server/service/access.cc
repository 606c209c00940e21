#include "server/service/access.h"

namespace hone::service {
namespace {

using rpc::Role;

// Every method of every service. A test compares this table with the protocol.
constexpr Access kTable[] = {
    {"/hone.v1.TuningService/CreateJob", Role::kClient, /*audited=*/true, "request_id"},
    {"/hone.v1.TuningService/GetJob", Role::kClient, false, "id"},
    {"/hone.v1.TuningService/WatchJob", Role::kClient, false, "id"},
    {"/hone.v1.TuningService/CancelJob", Role::kClient, true, "id"},
    {"/hone.v1.TuningService/ListJobs", Role::kClient, false, ""},
    {"/hone.v1.TuningService/ResumeJob", Role::kClient, true, "id"},
    {"/hone.v1.TuningService/LookupBest", Role::kClient, false, "target"},
    {"/hone.v1.TuningService/ListPins", Role::kClient, false, ""},
    {"/hone.v1.TuningService/ListRecords", Role::kClient, false, ""},
    {"/hone.v1.TuningService/ListWorkers", Role::kClient, false, ""},
    {"/hone.v1.TuningService/ExportRecords", Role::kClient, true, "job_id"},
    {"/hone.v1.TuningService/UploadInputs", Role::kClient, false, ""},
    {"/hone.v1.TuningService/GetArtifact", Role::kClient, false, "digest"},
    {"/hone.v1.TuningService/DescribeFeatures", Role::kClient, false, ""},
    {"/hone.v1.TuningService/DraftSchedule", Role::kClient, false, ""},
    {"/hone.v1.TuningService/ListModels", Role::kClient, false, "name"},
    {"/hone.v1.TuningService/TrainModel", Role::kClient, true, "target"},
    {"/hone.v1.TuningService/EvaluateModels", Role::kClient, false, "target"},
    {"/hone.v1.WorkerService/Synchronize", Role::kWorker, false, "worker_id"},
    {"/hone.v1.WorkerService/UploadArtifact", Role::kWorker, false, ""},
    {"/hone.v1.WorkerService/DownloadArtifact", Role::kWorker, false, "digest"},
    {"/hone.v1.AdminService/DrainWorker", Role::kAdmin, true, "id"},
    {"/hone.v1.AdminService/RemoveWorker", Role::kAdmin, true, "id"},
    {"/hone.v1.AdminService/BackupStore", Role::kAdmin, true, "path"},
    {"/hone.v1.AdminService/CompactStore", Role::kAdmin, true, ""},
    {"/hone.v1.AdminService/ImportRecords", Role::kAdmin, true, ""},
    {"/hone.v1.AdminService/ForgetRecords", Role::kAdmin, true, "workload_digest"},
    {"/hone.v1.AdminService/PinBest", Role::kAdmin, true, "workload_digest"},
    {"/hone.v1.AdminService/UnpinBest", Role::kAdmin, true, "workload_digest"},
};

}  // namespace

const Access* FindAccess(absl::string_view method) {
  for (const Access& access : kTable) {
    if (access.method == method) return &access;
  }
  return nullptr;
}

}  // namespace hone::service
