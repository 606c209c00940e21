#include "common/rpc/authenticator.h"

#include <grpc/grpc_security_constants.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"
#include "common/rpc/status.h"

namespace hone::rpc {
namespace {

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

absl::Status Refuse(absl::string_view reason, absl::string_view message) {
  return WithReason(absl::UnauthenticatedError(message), reason);
}

}  // namespace

absl::Status Authenticator::CheckCertificate(const grpc::AuthContext& peer) const {
  std::shared_ptr<const RevocationList> revoked;
  std::shared_ptr<const TokenTable> tokens;
  {
    absl::MutexLock lock(&mutex_);
    revoked = revoked_;
    tokens = tokens_;
  }
  if (revoked != nullptr && !revoked->IsEmpty()) {
    for (const grpc::string_ref& pem : peer.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME)) {
      const absl::StatusOr<CertificateFacts> facts = DescribeCertificate(View(pem));
      if (facts.ok() && !revoked->Contains(facts->serial)) continue;
      return Refuse("CERTIFICATE_REVOKED",
                    absl::StrCat("the certificate with the serial number ",
                                 facts.ok() ? facts->serial : "that cannot be read",
                                 " was revoked: ask the server's administrator for another one"));
    }
  }
  if (tokens == nullptr) return absl::OkStatus();
  for (const grpc::string_ref& uri : peer.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    absl::string_view hash = View(uri);
    if (!absl::ConsumePrefix(&hash, kTokenUri) || tokens->HasHash(hash)) continue;
    return Refuse("CERTIFICATE_REVOKED",
                  "the certificate was made with a token that was withdrawn: ask the server's "
                  "administrator for another configuration");
  }
  return absl::OkStatus();
}

absl::StatusOr<Identity> Authenticator::Identify(const grpc::ServerContextBase& context) const {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  const bool has_certificate = peer != nullptr && peer->IsPeerAuthenticated();
  if (has_certificate) HONE_RETURN_IF_ERROR(CheckCertificate(*peer));
  const auto [begin, end] = context.client_metadata().equal_range(kTokenHeader);
  if (begin != end) {
    absl::string_view token = View(begin->second);
    if (std::next(begin) != end || !absl::ConsumePrefix(&token, kTokenPrefix)) {
      return Refuse("TOKEN_MALFORMED",
                    "the token is malformed: 'authorization' must be one header "
                    "that reads 'Bearer TOKEN'");
    }
    if (PeerHost(context) == kInProcess) {
      const FindSession sessions = Sessions();
      std::optional<Identity> caller = sessions == nullptr ? std::nullopt : sessions(token);
      if (caller.has_value()) return *std::move(caller);
      return Refuse("SESSION_ENDED", "this session has ended: run hone dashboard again");
    }
    if (const std::shared_ptr<const TokenTable> tokens = Tokens(); tokens != nullptr) {
      if (std::optional<Identity> identity = tokens->Find(token)) return *std::move(identity);
    }
    return Refuse("TOKEN_UNKNOWN",
                  "the server does not know this token; it may have been withdrawn: ask the "
                  "server's administrator for another one");
  }
  if (has_certificate) {
    for (const grpc::string_ref& uri : peer->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
      absl::StatusOr<Identity> identity = IdentityFromUri(View(uri));
      if (identity.ok()) return identity;
    }
    return Refuse("CERTIFICATE_UNNAMED",
                  "the certificate names no caller (a URI hone://ROLE/NAME among its alternative "
                  "names), and no token was sent");
  }
  return Refuse("TOKEN_MISSING",
                "this server asks for a token or a certificate, and the call has neither: give "
                "--token-file, or certificate and key in the configuration");
}

bool Authenticator::Knows(absl::string_view name) const {
  const std::shared_ptr<const TokenTable> tokens = Tokens();
  return tokens != nullptr &&
         std::any_of(tokens->entries().begin(), tokens->entries().end(),
                     [&](const TokenTable::Entry& entry) { return entry.identity.name == name; });
}

std::string Authenticator::NameOf(const grpc::ServerContextBase& context) const {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (context.client_metadata().count(kTokenHeader) == 0 &&
      (peer == nullptr || !peer->IsPeerAuthenticated())) {
    return "";  // usual without authentication; avoids building the long error
  }
  const absl::StatusOr<Identity> identity = Identify(context);
  return identity.ok() ? identity->name : "";
}

std::string PeerHost(const grpc::ServerContextBase& context) {
  // "ipv4:10.0.0.7:5000", "ipv6:%5B::1%5D:5000", "unix:"
  const std::string peer = PlainPeer(context.peer());
  absl::string_view host = peer;
  if (absl::StartsWith(host, "unix")) return "unix";
  if (host == "unknown") return kInProcess;  // only these connections have no address
  host = host.substr(0, host.rfind(':'));
  absl::ConsumePrefix(&host, "[");
  absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

}  // namespace hone::rpc
