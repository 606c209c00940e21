#ifndef HONE_COMMON_RPC_OPENSSL_TYPES_H_
#define HONE_COMMON_RPC_OPENSSL_TYPES_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/certificate.h"

// Owning pointers to OpenSSL's objects, and functions shared by the sources that use OpenSSL.
namespace hone::rpc {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Deleter<X509_free>>;

// Returns a reader of a text. REQUIRES: the text outlives the reader.
inline BioPtr Reader(absl::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}
// InvalidArgument: not a certificate or key in PEM form, or the key has a passphrase.
absl::StatusOr<CertificatePtr> ParseCertificate(absl::string_view pem);
absl::StatusOr<KeyPtr> ParseKey(absl::string_view pem);
CertificateFacts FactsOf(const X509* certificate);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_OPENSSL_TYPES_H_
