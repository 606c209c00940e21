#include "common/rpc/server_certificates.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <utility>

namespace hone::rpc {
namespace {

grpc_ssl_client_certificate_request_type Asked(const ServerSecurity& security) {
  if (security.client_ca.empty()) return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  return security.require_certificates ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                       : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
}

}  // namespace

// Wraps credentials of gRPC's C interface. In the C++ interface, certificates can change only if
// gRPC itself reads them from files.
class ServerCertificates::Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(grpc_server_credentials* credentials) : credentials_(credentials) {}
  ~Credentials() override { grpc_server_credentials_release(credentials_); }
  // Not used: Authenticator identifies the callers.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

ServerCertificates::ServerCertificates(ServerSecurity security) : security_(std::move(security)) {}
ServerCertificates::~ServerCertificates() = default;

ServerSecurity ServerCertificates::Get() const {
  absl::MutexLock lock(&mutex_);
  return security_;
}

absl::Status ServerCertificates::Replace(ServerSecurity security) {
  absl::MutexLock lock(&mutex_);
  if (security.tls() != security_.tls() || Asked(security) != Asked(security_)) {
    return absl::FailedPreconditionError(
        "restart the server to change whether traffic is encrypted or whether callers are asked "
        "for a certificate");
  }
  // Equal certificates are not replaced, because handshakes during a replacement may use memory
  // that gRPC has just freed (grpc/grpc issue 36693).
  const bool same = security.identity.certificate == security_.identity.certificate &&
                    security.identity.key == security_.identity.key &&
                    security.client_ca == security_.client_ca;
  security_ = std::move(security);
  version_ += same ? 0 : 1;
  return absl::OkStatus();
}

grpc_ssl_certificate_config_reload_status ServerCertificates::Fetch(
    void* listener, grpc_ssl_server_certificate_config** config) {
  auto* const asking = static_cast<Listener*>(listener);
  ServerCertificates& owner = *asking->owner;
  absl::MutexLock lock(&owner.mutex_);
  if (asking->seen == owner.version_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const ServerSecurity& security = owner.security_;
  const grpc_ssl_pem_key_cert_pair pair{security.identity.key.c_str(),
                                        security.identity.certificate.c_str()};
  // gRPC requires authorities here even if callers are not asked for a certificate, although it
  // does not use them in that case.
  const std::string& roots =
      security.client_ca.empty() ? security.identity.certificate : security.client_ca;
  *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
  asking->seen = owner.version_;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

std::shared_ptr<grpc::ServerCredentials> ServerCertificates::MakeCredentials() {
  Listener* listener = nullptr;
  grpc_ssl_client_certificate_request_type asked;
  {
    absl::MutexLock lock(&mutex_);
    asked = Asked(security_);
    listener = &listeners_.emplace_back(Listener{.owner = this});
  }
  return std::make_shared<Credentials>(grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(asked, &Fetch, listener)));
}

}  // namespace hone::rpc
