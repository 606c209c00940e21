#ifndef HONE_COMMON_RPC_SERVER_CERTIFICATES_H_
#define HONE_COMMON_RPC_SERVER_CERTIFICATES_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/security.h"
#include "grpcpp/security/server_credentials.h"

namespace hone::rpc {

// What a server's TLS listeners show and whom they trust, which may change while they serve: each
// handshake has what was set last. Connections that are there stay as they are. Outlives the
// servers that use its credentials. Thread-safe.
class ServerCertificates {
 public:
  explicit ServerCertificates(ServerSecurity security);
  ~ServerCertificates();
  ServerCertificates(const ServerCertificates&) = delete;
  ServerCertificates& operator=(const ServerCertificates&) = delete;

  ServerSecurity Get() const;

  // For handshakes from now on. FailedPrecondition: whether traffic is encrypted, or whether
  // callers are asked for a certificate, would be another; that needs a new start.
  absl::Status Replace(ServerSecurity security);

  // Of one listener. REQUIRES: Get().tls().
  std::shared_ptr<grpc::ServerCredentials> MakeCredentials();

 private:
  class Credentials;
  // What a listener has seen; the listener's handshakes ask one at a time.
  struct Listener {
    ServerCertificates* owner = nullptr;
    int64_t seen = -1;  // version
  };
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* listener, grpc_ssl_server_certificate_config** config);

  mutable absl::Mutex mutex_;
  ServerSecurity security_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Listener> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_SERVER_CERTIFICATES_H_
