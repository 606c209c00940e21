#include "common/rpc/certificate.h"

#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/rpc/openssl_types.h"
#include "common/rpc/revocation.h"

namespace hone::rpc {
namespace {

constexpr char kScheme[] = "hone://";

using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;

// Returns OpenSSL's errors since the last call, oldest first.
absl::Status OpenSslError(absl::string_view what) {
  std::vector<std::string> reasons;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    reasons.push_back(reason == nullptr ? absl::StrCat("error ", code) : reason);
  }
  return absl::InternalError(absl::StrCat(what, ": ", absl::StrJoin(reasons, ", ")));
}

std::string Content(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, size);
}

absl::Status AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslError(absl::StrCat("certificate extension ", value));
  }
  return absl::OkStatus();
}

bool IsIp(const std::string& host) {
  std::array<unsigned char, 16> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// Checks a value of a name list. It must not contain characters that would end it early.
absl::Status CheckName(const std::string& name) {
  if (name.empty() || name.size() > 253 ||
      name.find_first_of(", \t\r\n;=\"\\") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name,
                     "' cannot be used in a certificate: it is empty, too long, or has a "
                     "blank, comma or quote"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> KeyText(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslError("writing a private key");
  }
  return Content(bio.get());
}

absl::StatusOr<std::string> CertificateText(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return OpenSslError("writing a certificate");
  return Content(bio.get());
}

// Makes a certificate without extensions and signature.
absl::StatusOr<CertificatePtr> Begin(const std::string& common_name, EVP_PKEY* key,
                                     absl::Time not_before, absl::Time not_after) {
  HONE_RETURN_IF_ERROR(CheckName(common_name));
  CertificatePtr certificate(X509_new());
  std::array<unsigned char, 16> serial;
  if (RAND_bytes(serial.data(), serial.size()) != 1) return OpenSslError("a serial number");
  serial[0] &= 0x7f;  // positive
  std::unique_ptr<BIGNUM, Deleter<BN_free>> number(
      BN_bin2bn(serial.data(), serial.size(), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  X509_set_version(certificate.get(), 2);  // 2 means version 3
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  const bool named =
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                                 -1, 0) == 1;
  if (!named || X509_set_pubkey(certificate.get(), key) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(not_before)) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(not_after)) == nullptr) {
    return OpenSslError(absl::StrCat("making the certificate of ", common_name));
  }
  return certificate;
}

absl::StatusOr<KeyPair> Sign(X509* certificate, EVP_PKEY* key, EVP_PKEY* signer) {
  if (X509_sign(certificate, signer, EVP_sha256()) == 0) return OpenSslError("signing");
  KeyPair pair;
  HONE_ASSIGN_OR_RETURN(pair.certificate, CertificateText(certificate));
  HONE_ASSIGN_OR_RETURN(pair.key, KeyText(key));
  return pair;
}

absl::StatusOr<KeyPtr> NewKey() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("making a key");
  return key;
}

std::string CommonName(const X509_NAME* name) {
  std::array<char, 256> text{};
  const int size = X509_NAME_get_text_by_NID(const_cast<X509_NAME*>(name), NID_commonName,
                                             text.data(), text.size());
  return size > 0 ? std::string(text.data(), size) : "";
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string IpText(const ASN1_OCTET_STRING* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6;
  inet_ntop(family, ASN1_STRING_get0_data(bytes), text.data(), text.size());
  return text.data();
}

std::string SerialOf(const X509* certificate) {
  const std::unique_ptr<BIGNUM, Deleter<BN_free>> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* const digits = number == nullptr ? nullptr : BN_bn2hex(number.get());
  if (digits == nullptr) return "";
  const absl::StatusOr<std::string> serial = ParseSerial(digits);
  OPENSSL_free(digits);
  return serial.value_or("");
}

void ReadNames(const X509* certificate, CertificateFacts& facts) {
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    const auto text = [](const ASN1_STRING* s) {
      return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(s)),
                         ASN1_STRING_length(s));
    };
    if (name->type == GEN_DNS) facts.hosts.push_back(text(name->d.dNSName));
    if (name->type == GEN_IPADD) facts.hosts.push_back(IpText(name->d.iPAddress));
    if (name->type != GEN_URI) continue;
    std::string uri = text(name->d.uniformResourceIdentifier);
    absl::string_view hash = uri;
    if (absl::ConsumePrefix(&hash, kTokenUri)) {
      facts.token_hash = std::string(hash);
    } else {
      facts.uri = std::move(uri);
    }
  }
}

}  // namespace

absl::StatusOr<CertificatePtr> ParseCertificate(absl::string_view pem) {
  const BioPtr bio = Reader(pem);
  CertificatePtr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError("not a certificate in PEM form");
  }
  return certificate;
}

absl::StatusOr<KeyPtr> ParseKey(absl::string_view pem) {
  const BioPtr bio = Reader(pem);
  // The empty passphrase keeps OpenSSL from asking the user.
  const auto none = [](char*, int, int, void*) { return 0; };
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, none, nullptr));
  if (key == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError("not a private key in PEM form without passphrase");
  }
  return key;
}

CertificateFacts FactsOf(const X509* certificate) {
  CertificateFacts facts{.subject = CommonName(X509_get_subject_name(certificate)),
                         .issuer = CommonName(X509_get_issuer_name(certificate)),
                         .serial = SerialOf(certificate),
                         .not_before = ToTime(X509_get0_notBefore(certificate)),
                         .not_after = ToTime(X509_get0_notAfter(certificate))};
  ReadNames(certificate, facts);
  return facts;
}

absl::StatusOr<KeyPair> MakeAuthority(const std::string& common_name, absl::Time not_before,
                                      absl::Time not_after) {
  HONE_ASSIGN_OR_RETURN(const KeyPtr key, NewKey());
  HONE_ASSIGN_OR_RETURN(const CertificatePtr certificate,
                        Begin(common_name, key.get(), not_before, not_after));
  X509* const x509 = certificate.get();
  if (X509_set_issuer_name(x509, X509_get_subject_name(x509)) != 1) return OpenSslError("issuer");
  HONE_RETURN_IF_ERROR(AddExtension(x509, x509, NID_basic_constraints, "critical,CA:TRUE"));
  HONE_RETURN_IF_ERROR(AddExtension(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign"));
  HONE_RETURN_IF_ERROR(AddExtension(x509, x509, NID_subject_key_identifier, "hash"));
  return Sign(x509, key.get(), key.get());
}

absl::StatusOr<KeyPair> IssueCertificate(const KeyPair& authority,
                                         const CertificateRequest& request) {
  HONE_ASSIGN_OR_RETURN(const CertificatePtr issuer, ParseCertificate(authority.certificate));
  HONE_ASSIGN_OR_RETURN(const KeyPtr issuer_key, ParseKey(authority.key));
  HONE_ASSIGN_OR_RETURN(const KeyPtr key, NewKey());
  HONE_ASSIGN_OR_RETURN(
      const CertificatePtr certificate,
      Begin(request.common_name, key.get(), request.not_before, request.not_after));
  X509* const x509 = certificate.get();
  if (X509_set_issuer_name(x509, X509_get_subject_name(issuer.get())) != 1) {
    return OpenSslError("issuer");
  }
  std::vector<std::string> names;
  for (const std::string& host : request.hosts) {
    HONE_RETURN_IF_ERROR(CheckName(host));
    names.push_back(absl::StrCat(IsIp(host) ? "IP:" : "DNS:", host));
  }
  if (!request.uri.empty()) {
    HONE_RETURN_IF_ERROR(CheckName(request.uri));
    names.push_back(absl::StrCat("URI:", request.uri));
  }
  if (!request.token_hash.empty()) {
    HONE_RETURN_IF_ERROR(CheckName(request.token_hash));
    names.push_back(absl::StrCat("URI:", kTokenUri, request.token_hash));
  }
  HONE_RETURN_IF_ERROR(
      AddExtension(x509, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  HONE_RETURN_IF_ERROR(
      AddExtension(x509, issuer.get(), NID_key_usage, "critical,digitalSignature"));
  HONE_RETURN_IF_ERROR(AddExtension(x509, issuer.get(), NID_ext_key_usage,
                                    request.server ? "serverAuth" : "clientAuth"));
  HONE_RETURN_IF_ERROR(AddExtension(x509, issuer.get(), NID_subject_key_identifier, "hash"));
  HONE_RETURN_IF_ERROR(AddExtension(x509, issuer.get(), NID_authority_key_identifier, "keyid"));
  if (!names.empty()) {
    HONE_RETURN_IF_ERROR(
        AddExtension(x509, issuer.get(), NID_subject_alt_name, absl::StrJoin(names, ",")));
  }
  return Sign(x509, key.get(), issuer_key.get());
}

absl::StatusOr<CertificateFacts> DescribeCertificate(absl::string_view pem) {
  HONE_ASSIGN_OR_RETURN(const CertificatePtr certificate, ParseCertificate(pem));
  return FactsOf(certificate.get());
}

absl::Status CheckLifetime(absl::string_view whose, const CertificateFacts& facts, absl::Time now) {
  const std::string clock = absl::StrCat(", and this machine's clock says ", FormatMinute(now));
  if (now < facts.not_before) {
    return absl::FailedPreconditionError(absl::StrCat(
        whose, " (", facts.subject, ") is not valid before ", FormatMinute(facts.not_before), clock,
        ": set the clock, for example with NTP"));
  }
  if (now > facts.not_after) {
    return absl::FailedPreconditionError(
        absl::StrCat(whose, " (", facts.subject, ") has expired on ", FormatMinute(facts.not_after),
                     clock, ": set the clock if it is wrong, or else get a new certificate"));
  }
  return absl::OkStatus();
}

absl::Status CheckKeyPair(const KeyPair& pair) {
  HONE_ASSIGN_OR_RETURN(const CertificatePtr certificate, ParseCertificate(pair.certificate));
  HONE_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(pair.key));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the key does not belong to the certificate");
  }
  return absl::OkStatus();
}

std::string IdentityUri(const Identity& identity) {
  return absl::StrCat(kScheme, RoleName(identity.role), "/", identity.name);
}

absl::StatusOr<Identity> IdentityFromUri(absl::string_view uri) {
  absl::string_view rest = uri;
  const size_t slash = rest.find('/', sizeof(kScheme) - 1);
  if (!absl::ConsumePrefix(&rest, kScheme) || slash == absl::string_view::npos ||
      slash + 1 == uri.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", uri, "' names no caller; it should read ", kScheme, "ROLE/NAME"));
  }
  Identity identity{.name = std::string(uri.substr(slash + 1))};
  HONE_ASSIGN_OR_RETURN(identity.role, RoleFromName(rest.substr(0, rest.find('/'))));
  return identity;
}

std::string FormatDay(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

std::string FormatMinute(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

}  // namespace hone::rpc
