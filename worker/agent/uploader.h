#ifndef HONE_WORKER_AGENT_UPLOADER_H_
#define HONE_WORKER_AGENT_UPLOADER_H_

#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/agent/bounded_dir.h"
#include "worker/agent/server_link.h"

namespace hone::agent {

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

#endif  // HONE_WORKER_AGENT_UPLOADER_H_
