#ifndef HONE_WORKER_AGENT_SERVER_LINK_H_
#define HONE_WORKER_AGENT_SERVER_LINK_H_

#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "hone/v1/worker.pb.h"
#include "worker/agent/bounded_dir.h"

namespace hone::agent {

// The agent's connection to the server. Thread-safe.
class ServerLink {
 public:
  using SynchronizeDone = absl::AnyInvocable<void(absl::StatusOr<v1::SynchronizeResponse>) &&>;
  virtual ~ServerLink() = default;

  // Makes one long-poll call. `done` runs once, usually on another thread, but it may run before
  // this function returns. Unavailable: the server is not reachable or still starting. Cancelled:
  // Shutdown was called.
  virtual void Synchronize(const v1::SynchronizeRequest& request, SynchronizeDone done) = 0;
  // Sends an artifact, or a reference kernel by its name (common/record/reference_name.h). Blocks.
  virtual absl::Status Upload(const std::string& digest, const std::string& bytes) = 0;
  // Downloads an artifact or reference kernel. If the connection breaks, the download of an
  // artifact continues where it stopped. DataLoss: it is too large, or an artifact does not match
  // its digest. NotFound: the server does not have it. Blocks.
  virtual absl::StatusOr<std::string> Download(const std::string& digest) = 0;
  // Ends every call in progress with Cancelled. Later calls also fail with Cancelled, at once.
  virtual void Shutdown() = 0;
};

// Connects over gRPC. Errors: the address is malformed or not allowed (see rpc::CreateChannel).
absl::StatusOr<std::unique_ptr<ServerLink>> ConnectToServer(const std::string& address,
                                                            const rpc::ChannelSecurity& security);

// Sends artifacts and reference kernels to the server: directly for callers that wait for the
// result, and in its own thread if the server asked for an artifact. Thread-safe.
class Uploader {
 public:
  // `link` and `artifacts` must outlive this object.
  Uploader(ServerLink* link, BoundedDir* artifacts);
  ~Uploader() { Stop(); }

  // Sends bytes under a name. Retries for a minute while the server has no room (ResourceExhausted)
  // and Stop has not been called. Other errors are those of ServerLink::Upload. Blocks.
  absl::Status Upload(const std::string& name, const std::string& bytes);
  // The same for an artifact's file. NotFound: it is not in the folder.
  absl::Status UploadArtifact(const std::string& digest);
  // Queues an artifact to be sent. Does nothing if it is in the queue already. A failure is logged;
  // the server asks again if it still needs the artifact.
  void Enqueue(const std::string& digest);

  // Ends the thread. An upload in progress is not interrupted, but not retried either.
  void Stop();

 private:
  void Loop();
  bool IsStopping();

  ServerLink* const link_;
  BoundedDir* const artifacts_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::string> queue_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_SERVER_LINK_H_
