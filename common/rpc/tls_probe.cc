#include "common/rpc/tls_probe.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/openssl_types.h"

namespace hone::rpc {
namespace {

using ContextPtr = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Deleter<SSL_free>>;

absl::Status Problem(absl::string_view what) { return absl::FailedPreconditionError(what); }

std::string LastError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? "the connection was closed" : reason;
}

// Waits until the socket can be read or written. Returns false if the deadline passes first.
bool Wait(int fd, short events, absl::Time deadline) {
  const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
  pollfd entry{fd, events, 0};
  return left > 0 && poll(&entry, 1, static_cast<int>(left)) > 0;
}

absl::StatusOr<int> Connect(const Address& address, absl::Time deadline) {
  HONE_ASSIGN_OR_RETURN(const AddressList list, Resolve(address));
  int error = ETIMEDOUT;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    const int fd = socket(entry->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    int result = connect(fd, entry->ai_addr, entry->ai_addrlen) == 0 ? 0 : errno;
    if (result == EINPROGRESS) {
      socklen_t size = sizeof(result);
      result = ETIMEDOUT;
      if (Wait(fd, POLLOUT, deadline)) getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size);
    }
    if (result == 0) return fd;
    error = result;
    close(fd);
  }
  return absl::UnavailableError(
      absl::StrCat("no server answers at ", address.ToText(), ": ", strerror(error)));
}

// The server's certificate that was refused in this thread's handshake. OpenSSL itself drops it
// when the handshake fails.
thread_local CertificatePtr refused_certificate;
thread_local bool is_authority = false;  // the refused certificate is not the server's own

bool IsOfLifetime(int error) {
  return error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID;
}

int KeepRefused(int accepted, X509_STORE_CTX* verification) {
  // The lifetime may be that of the authority.
  X509* const certificate = IsOfLifetime(X509_STORE_CTX_get_error(verification))
                                ? X509_STORE_CTX_get_current_cert(verification)
                                : X509_STORE_CTX_get0_cert(verification);
  if (accepted == 0 && certificate != nullptr) {
    is_authority = certificate != X509_STORE_CTX_get0_cert(verification);
    X509_up_ref(certificate);
    refused_certificate.reset(certificate);
  }
  return accepted;
}

absl::Status LoadContext(SSL_CTX* context, const ChannelSecurity& security) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, KeepRefused);
  const unsigned char http2[] = "\x02h2";
  SSL_CTX_set_alpn_protos(context, http2, sizeof(http2) - 1);
  if (security.ca == kSystemAuthorities) {
    SSL_CTX_set_default_verify_paths(context);
  } else {
    const BioPtr bio = Reader(security.ca);
    while (X509* raw = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
      const CertificatePtr authority(raw);
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    }
    ERR_clear_error();
  }
  if (security.identity.certificate.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const CertificatePtr certificate,
                        ParseCertificate(security.identity.certificate));
  HONE_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(security.identity.key));
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return Problem(absl::StrCat("our own certificate cannot be used: ", LastError()));
  }
  return absl::OkStatus();
}

absl::StatusOr<CertificateFacts> PeerFacts(const SSL* ssl) {
  CertificatePtr peer = std::move(refused_certificate);
  if (peer == nullptr) peer.reset(SSL_get1_peer_certificate(ssl));
  if (peer == nullptr) return absl::NotFoundError("the server sent no certificate");
  return FactsOf(peer.get());
}

// Explains why the verification of the server's certificate failed.
absl::Status ExplainVerification(long result, const absl::StatusOr<CertificateFacts>& server,
                                 const std::string& host) {
  const std::string subject = server.ok() ? server->subject : "the server";
  if (server.ok() && IsOfLifetime(result)) {
    const absl::string_view whose =
        is_authority ? "the certificate of the server's authority" : "the server's certificate";
    HONE_RETURN_IF_ERROR(CheckLifetime(whose, *server, absl::Now()));
  }
  switch (result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Problem(absl::StrCat(
          "the server's certificate is not for ", host, " but for ",
          server.ok() ? absl::StrJoin(server->hosts, ", ") : subject,
          "; connect to one of these, or make a certificate with this name (hone-server init "
          "--host)"));
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return Problem(absl::StrCat(
          "the server's certificate was issued by an authority that is not trusted "
          "here (",
          server.ok() ? server->issuer : subject, "); give the server's own authority as ca"));
    default:
      return Problem(absl::StrCat("the server's certificate is refused: ",
                                  X509_verify_cert_error_string(result)));
  }
}

// Explains the server's alert. Returns OK if the reason is not a known alert.
absl::Status ExplainAlert(int reason, const ChannelSecurity& security) {
  std::string lifetime;  // of our certificate, which the server may judge by a wrong clock
  if (const auto own = DescribeCertificate(security.identity.certificate); own.ok()) {
    lifetime = absl::StrCat("it is valid from ", FormatMinute(own->not_before), " to ",
                            FormatMinute(own->not_after), ", and this machine's clock says ",
                            FormatMinute(absl::Now()));
  }
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return Problem("the server asks for a certificate, and none was given (certificate and key)");
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return Problem(security.identity.certificate.empty()
                         ? "the server refused the handshake; it may ask for a certificate "
                           "(certificate and key)"
                         : "the server refused the handshake");
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      HONE_RETURN_IF_ERROR(CheckOwnLifetime(security, absl::Now()));
      return Problem(absl::StrCat("the server says that our certificate has expired, but ",
                                  lifetime, ": the server's clock is probably wrong"));
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      HONE_RETURN_IF_ERROR(CheckOwnLifetime(security, absl::Now()));
      return Problem(absl::StrCat(
          "the server does not accept our certificate: either it was issued by an authority that "
          "the server does not know, or the server's clock is wrong (",
          lifetime, ")"));
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return Problem(
          "the server does not accept our certificate: it was issued by an authority that the "
          "server does not know");
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
      return Problem("the server does not speak TLS on this port");
    default:
      return absl::OkStatus();
  }
}

class Probe {
 public:
  Probe(int fd, SSL* ssl, absl::Time deadline) : fd_(fd), ssl_(ssl), deadline_(deadline) {}

  // Repeats a call of OpenSSL until it is done. Returns its result; 1 means success.
  template <typename Function>
  int Drive(Function function) {
    while (true) {
      ERR_clear_error();
      errno = 0;
      const int result = function();
      const int error = SSL_get_error(ssl_, result);
      if (error == SSL_ERROR_WANT_READ && Wait(fd_, POLLIN, deadline_)) continue;
      if (error == SSL_ERROR_WANT_WRITE && Wait(fd_, POLLOUT, deadline_)) continue;
      timed_out_ = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
      return result;
    }
  }
  bool timed_out() const { return timed_out_; }

 private:
  const int fd_;
  SSL* const ssl_;
  const absl::Time deadline_;
  bool timed_out_ = false;
};

// Explains a connection that the server closed without an alert after it asked for a certificate.
// Some servers do this if they do not accept the certificate.
absl::Status ExplainOwn(const ChannelSecurity& security) {
  if (security.identity.certificate.empty()) {
    return Problem("the server asks for a certificate, and none was given (certificate and key)");
  }
  HONE_RETURN_IF_ERROR(CheckOwnLifetime(security, absl::Now()));
  return Problem(
      "the server does not accept our certificate: it was issued by an authority that the server "
      "does not know");
}

// `asked`: the server asked for a certificate.
absl::Status Explain(const SSL* ssl, const ChannelSecurity& security, const std::string& host,
                     bool asked, bool timed_out) {
  if (timed_out) return Problem("the server does not answer; it may not speak TLS on this port");
  if (const long result = SSL_get_verify_result(ssl); result != X509_V_OK) {
    ERR_clear_error();
    return ExplainVerification(result, PeerFacts(ssl), host);
  }
  HONE_RETURN_IF_ERROR(ExplainAlert(ERR_GET_REASON(ERR_peek_last_error()), security));
  if (asked) return ExplainOwn(security);
  return Problem(absl::StrCat("the TLS handshake failed: ", LastError()));
}

}  // namespace

absl::StatusOr<TlsFinding> ProbeTls(absl::string_view text, const ChannelSecurity& security,
                                    absl::Duration limit) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Address> addresses, ParseAddresses(text));
  const Address& address = addresses.front();
  const absl::Time deadline = absl::Now() + limit;
  refused_certificate.reset();
  const std::string host = security.server_name.empty() ? address.host : security.server_name;
  const ContextPtr context(SSL_CTX_new(TLS_client_method()));
  HONE_RETURN_IF_ERROR(LoadContext(context.get(), security));
  bool asked = false;
  SSL_CTX_set_cert_cb(
      context.get(),
      [](SSL*, void* flag) {
        *static_cast<bool*>(flag) = true;
        return 1;
      },
      &asked);
  HONE_ASSIGN_OR_RETURN(const int fd, Connect(address, deadline));
  const absl::Cleanup close_socket = [fd] { close(fd); };
  const SslPtr ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), fd);
  in6_addr ip;
  if (inet_pton(AF_INET, host.c_str(), &ip) == 1 || inet_pton(AF_INET6, host.c_str(), &ip) == 1) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl.get(), host.c_str());
    SSL_set1_host(ssl.get(), host.c_str());
  }
  Probe probe(fd, ssl.get(), deadline);
  if (probe.Drive([&] { return SSL_connect(ssl.get()); }) != 1) {
    return Explain(ssl.get(), security, host, asked, probe.timed_out());
  }
  // With TLS 1.3 the server checks our certificate only after our side of the handshake is done. An
  // HTTP/2 server sends the first message, so what it sends now is its first frame or a refusal.
  char byte = 0;
  if (probe.Drive([&] { return SSL_peek(ssl.get(), &byte, 1); }) != 1) {
    return Explain(ssl.get(), security, host, asked, probe.timed_out());
  }
  TlsFinding finding{.protocol = SSL_get_version(ssl.get())};
  HONE_ASSIGN_OR_RETURN(finding.server, PeerFacts(ssl.get()));
  return finding;
}

}  // namespace hone::rpc
