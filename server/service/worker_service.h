#ifndef HONE_SERVER_SERVICE_WORKER_SERVICE_H_
#define HONE_SERVER_SERVICE_WORKER_SERVICE_H_

#include <chrono>

#include "common/rpc/authenticator.h"
#include "hone/v1/worker.grpc.pb.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/service/readiness.h"
#include "server/service/reference_cache.h"
#include "server/service/server_observer.h"
#include "server/service/upload_handler.h"
#include "server/store/store.h"

namespace hone::service {

// The gRPC service for workers: converts, and leaves the work to the fleet. Thread-safe. Errors:
// INVALID_ARGUMENT malformed or over a limit of worker_convert.h, or bytes that do not have their
// digest, or are not of their name (reference_cache.h); NOT_FOUND no such artifact;
// RESOURCE_EXHAUSTED no room for an upload beside others (upload_handler.h); UNAVAILABLE the server
// starts or drains.
class WorkerService {
 public:
  // All outlive it; `observer` may be null.
  WorkerService(fleet::Fleet* fleet, fleet::ArtifactCache* artifacts, store::Store* store,
                const Readiness* readiness, const rpc::Authenticator* authenticator,
                UploadHandler* uploads, ServerObserver* observer)
      : fleet_(fleet),
        artifacts_(artifacts),
        store_(store),
        readiness_(readiness),
        authenticator_(authenticator),
        uploads_(uploads),
        observer_(observer) {}

  // `arrived`: when the call came.
  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* context,
                                        const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response,
                                        std::chrono::steady_clock::time_point arrived);
  grpc::ServerReadReactor<v1::WorkerArtifactChunk>* UploadArtifact(
      grpc::CallbackServerContext* context, v1::UploadArtifactResponse* response);
  grpc::ServerWriteReactor<v1::WorkerArtifactChunk>* DownloadArtifact(
      grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request);

 private:
  fleet::Fleet* const fleet_;
  fleet::ArtifactCache* const artifacts_;
  store::Store* const store_;
  const Readiness* const readiness_;
  const rpc::Authenticator* const authenticator_;
  UploadHandler* const uploads_;
  ServerObserver* const observer_;
  ReferenceCache references_;
};

// An artifact from the cache or the store. NotFound: it is in neither.
absl::StatusOr<std::shared_ptr<const std::string>> FindArtifact(const std::string& digest,
                                                                fleet::ArtifactCache& artifacts,
                                                                store::Store& store);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_WORKER_SERVICE_H_
