#ifndef HONE_SERVER_SERVICE_WORKER_SERVICE_H_
#define HONE_SERVER_SERVICE_WORKER_SERVICE_H_

#include <chrono>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "server/fleet/worker.h"
#include "server/service/handler.h"
#include "server/service/transfer_handler.h"

namespace hone::service {

// Limits of one call of a worker.
inline constexpr int kMaxLeasesPerWorker = 4096;
inline constexpr int kMaxSlots = 1024;

// InvalidArgument: an id, epoch or target is missing, a number is out of range, a list is over its
// limit, or a key does not belong to its target; the message names the field. If record::FromProto
// refuses a result, its error is stored in FinishedLease::malformed.
absl::StatusOr<fleet::WorkerReport> FromProto(const v1::SynchronizeRequest& request);
v1::SynchronizeResponse ToProto(const fleet::SynchronizeReply& reply);

// The gRPC service for workers. It converts messages and passes the work to the fleet. Thread-safe.
// Errors:
//   INVALID_ARGUMENT    a request is malformed or over one of these limits, or the bytes of
//                       an upload do not match their digest or name (transfer_handler.h)
//   NOT_FOUND           there is no such artifact
//   FAILED_PRECONDITION a worker sends the reference kernel of a workload of which it builds
//   nothing RESOURCE_EXHAUSTED  other uploads use all memory for uploads (transfer_handler.h)
//   UNAVAILABLE         the server is starting or shutting down
class WorkerService {
 public:
  explicit WorkerService(const Dependencies& deps) : deps_(deps) {}

  // `arrived`: the arrival time of the call.
  grpc::ServerUnaryReactor* Synchronize(Context* context, const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response,
                                        std::chrono::steady_clock::time_point arrived);
  grpc::ServerReadReactor<v1::WorkerArtifactChunk>* UploadArtifact(
      Context* context, v1::UploadArtifactResponse* response);
  grpc::ServerWriteReactor<v1::WorkerArtifactChunk>* DownloadArtifact(
      const rpc::Identity&, Context* context, const v1::DownloadArtifactRequest* request);

 private:
  const Dependencies& deps_;
  ReferenceCache references_;
};

// The calls of clients and administrators about workers. A drain or a removal is answered once it
// is durable. Thread-safe. Errors are those of tuning.proto and admin.proto.
class FleetService {
 public:
  explicit FleetService(const Dependencies& deps) : deps_(deps) {}

  absl::Status ListWorkers(const v1::ListWorkersRequest&, v1::ListWorkersResponse*);
  void DrainWorker(Context*, const v1::DrainWorkerRequest*, v1::WorkerInfo*, Reply);
  void RemoveWorker(Context*, const v1::RemoveWorkerRequest*, v1::RemoveWorkerResponse*, Reply);

 private:
  const Dependencies& deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_WORKER_SERVICE_H_
