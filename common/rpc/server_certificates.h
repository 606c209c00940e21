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

// The certificates that a server's TLS listeners use, and the authorities that they trust. They may
// be replaced while the server runs: each handshake uses the latest ones, and existing connections
// are not affected. Must outlive the servers that use its credentials. Thread-safe.
class ServerCertificates {
 public:
  explicit ServerCertificates(ServerSecurity security);
  ~ServerCertificates();
  ServerCertificates(const ServerCertificates&) = delete;
  ServerCertificates& operator=(const ServerCertificates&) = delete;

  ServerSecurity Get() const;

  // Sets the certificates of later handshakes. FailedPrecondition: the new settings change whether
  // traffic is encrypted or whether callers are asked for a certificate, which needs a restart.
  absl::Status Replace(ServerSecurity security);

  // Makes the credentials of one listener. REQUIRES: Get().tls().
  std::shared_ptr<grpc::ServerCredentials> MakeCredentials();

 private:
  class Credentials;
  // The version that a listener has fetched. The listener's handshakes fetch one at a time.
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
