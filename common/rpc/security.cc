#include "common/rpc/security.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/secret.h"

namespace hone::rpc {
namespace {

absl::Status Named(absl::string_view option, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(option, ": ", status.message()));
}

bool IsPem(absl::string_view source) { return absl::StrContains(source, "-----BEGIN "); }

// Returns a PEM text. `source` is a path or the text itself.
absl::StatusOr<std::string> Load(absl::string_view option, const std::string& source, bool secret) {
  if (source.empty() || IsPem(source)) return source;
  absl::StatusOr<std::string> text = secret ? ReadSecretFile(source) : ReadFile(source);
  if (!text.ok()) return Named(option, text.status());
  if (!IsPem(*text)) {
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", source, " has no PEM text"));
  }
  return text;
}

absl::StatusOr<KeyPair> LoadKeyPair(const std::string& certificate, const std::string& key) {
  KeyPair pair;
  if (certificate.empty() != key.empty()) {
    return absl::InvalidArgumentError(
        "certificate and key belong together: one of them is missing");
  }
  if (certificate.empty()) return pair;
  HONE_ASSIGN_OR_RETURN(pair.certificate, Load("certificate", certificate, /*secret=*/false));
  HONE_ASSIGN_OR_RETURN(pair.key, Load("key", key, /*secret=*/true));
  if (absl::Status usable = CheckKeyPair(pair); !usable.ok()) {
    return Named(IsPem(certificate) ? "certificate" : absl::StrCat("certificate ", certificate),
                 usable);
  }
  return pair;
}

}  // namespace

absl::StatusOr<ChannelSecurity> LoadSecurity(const SecuritySources& sources) {
  ChannelSecurity security{.server_name = sources.server_name, .insecure = sources.insecure};
  if (sources.ca == kSystemAuthorities) {
    security.ca = sources.ca;
  } else {
    HONE_ASSIGN_OR_RETURN(security.ca, Load("ca", sources.ca, /*secret=*/false));
    if (!security.ca.empty()) {
      const absl::Status readable = DescribeCertificate(security.ca).status();
      if (!readable.ok()) return Named("ca", readable);
    }
  }
  HONE_ASSIGN_OR_RETURN(security.identity, LoadKeyPair(sources.certificate, sources.key));
  if (!security.identity.certificate.empty() && !security.tls()) {
    return absl::InvalidArgumentError(
        "a certificate needs TLS: also give ca (the server's authority, or \"system\")");
  }
  if (!sources.token.empty() && !sources.token_file.empty()) {
    return absl::InvalidArgumentError("token and token-file: give one of them");
  }
  security.token = sources.token;
  if (!sources.token_file.empty()) {
    absl::StatusOr<std::string> token = ReadSecretFile(sources.token_file);
    if (!token.ok()) return Named("token-file", token.status());
    if (token->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token-file: ", sources.token_file, " is empty"));
    }
    security.token = *std::move(token);
  }
  for (const char c : security.token) {
    if (c <= ' ' || c > '~') {
      return absl::InvalidArgumentError(
          "token: it contains blanks or characters that are not ASCII");
    }
  }
  return security;
}

absl::Status CheckOwnLifetime(const ChannelSecurity& security, absl::Time now) {
  if (security.identity.certificate.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const CertificateFacts facts,
                        DescribeCertificate(security.identity.certificate));
  return CheckLifetime("our own certificate", facts, now);
}

absl::StatusOr<ServerSecurity> LoadServerSecurity(const ServerSecuritySources& sources,
                                                  absl::Time now) {
  ServerSecurity security{.insecure = sources.insecure};
  HONE_ASSIGN_OR_RETURN(security.identity, LoadKeyPair(sources.certificate, sources.key));
  if (security.tls()) {
    HONE_ASSIGN_OR_RETURN(const CertificateFacts facts,
                          DescribeCertificate(security.identity.certificate));
    HONE_RETURN_IF_ERROR(CheckLifetime("the server's certificate", facts, now));
  }
  const std::string& mode = sources.client_certificates;
  if (mode != "" && mode != "none" && mode != "accept" && mode != "require") {
    return absl::InvalidArgumentError(
        absl::StrCat("client-certificates: '", mode, "' is not none, accept or require"));
  }
  if (mode == "" || mode == "none") return security;
  if (!security.tls() || sources.client_ca.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "client-certificates: to ", mode, " them, also give certificate, key and client-ca"));
  }
  HONE_ASSIGN_OR_RETURN(security.client_ca, Load("client-ca", sources.client_ca, false));
  const absl::Status readable = DescribeCertificate(security.client_ca).status();
  if (!readable.ok()) return Named("client-ca", readable);
  security.require_certificates = mode == "require";
  return security;
}

absl::Status CheckAllowed(const Address& address, bool tls, bool insecure) {
  if (tls || insecure || address.IsLocal()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      address.ToText(),
      " is not limited to this machine, and traffic is not encrypted: set up TLS (ca of the "
      "client, "
      "certificate and key of the server; hone-server init makes them), or give --insecure if the "
      "network is trusted"));
}

}  // namespace hone::rpc
