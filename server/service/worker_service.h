#ifndef HONE_SERVER_SERVICE_WORKER_SERVICE_H_
#define HONE_SERVER_SERVICE_WORKER_SERVICE_H_

#include <chrono>

#include "hone/v1/worker.pb.h"
#include "server/service/handler.h"
#include "server/service/reference_cache.h"

namespace hone::service {

// The gRPC service for workers. It converts messages and passes the work to the fleet. Thread-safe.
// Errors:
//   INVALID_ARGUMENT    a request is malformed or over a limit of worker_convert.h, or the bytes of
//                       an upload do not match their digest or name (reference_cache.h)
//   NOT_FOUND           there is no such artifact
//   RESOURCE_EXHAUSTED  other uploads use all memory for uploads (upload_handler.h)
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
      Context* context, const v1::DownloadArtifactRequest* request);

 private:
  const Dependencies& deps_;
  ReferenceCache references_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_WORKER_SERVICE_H_
