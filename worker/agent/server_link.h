#ifndef HONE_WORKER_AGENT_SERVER_LINK_H_
#define HONE_WORKER_AGENT_SERVER_LINK_H_

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "hone/v1/worker.pb.h"

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

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_SERVER_LINK_H_
