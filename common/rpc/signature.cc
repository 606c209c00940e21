#include "common/rpc/signature.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/openssl_types.h"

namespace hone::rpc {
namespace {

constexpr size_t kPublicKeyBytes = 32;
constexpr size_t kSignatureBytes = 64;

using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

absl::StatusOr<KeyPtr> ParseSigningKey(absl::string_view pem) {
  HONE_ASSIGN_OR_RETURN(KeyPtr key, ParseKey(pem));
  if (EVP_PKEY_id(key.get()) == EVP_PKEY_ED25519) return key;
  return absl::InvalidArgumentError(
      "not an Ed25519 key; \"openssl genpkey -algorithm ed25519 -out key.pem\" makes one");
}

absl::StatusOr<std::string> RawPublicKey(const EVP_PKEY* key) {
  std::string bytes(kPublicKeyBytes, '\0');
  size_t size = bytes.size();
  if (EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(bytes.data()), &size) ==
          1 &&
      size == kPublicKeyBytes) {
    return bytes;
  }
  ERR_clear_error();
  return absl::InternalError("OpenSSL does not tell the public key");
}

}  // namespace

absl::StatusOr<std::string> PublicKeyOfPrivate(absl::string_view pem) {
  HONE_ASSIGN_OR_RETURN(const KeyPtr key, ParseSigningKey(pem));
  return RawPublicKey(key.get());
}

absl::StatusOr<std::string> ParsePublicKey(absl::string_view pem) {
  const BioPtr bio = Reader(pem);
  const KeyPtr key(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
  if (key != nullptr && EVP_PKEY_id(key.get()) == EVP_PKEY_ED25519) return RawPublicKey(key.get());
  ERR_clear_error();
  return absl::InvalidArgumentError(
      "not a public Ed25519 key in PEM form; \"openssl pkey -in key.pem -pubout -out key.pub.pem\" "
      "writes that of a private key");
}

absl::StatusOr<std::string> Sign(absl::string_view private_pem, absl::string_view message) {
  HONE_ASSIGN_OR_RETURN(const KeyPtr key, ParseSigningKey(private_pem));
  const DigestContextPtr context(EVP_MD_CTX_new());
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     Bytes(message), message.size()) == 1 &&
      size == kSignatureBytes) {
    return signature;
  }
  ERR_clear_error();
  return absl::InternalError("OpenSSL could not sign");
}

bool IsSignatureOf(absl::string_view public_key, absl::string_view message,
                   absl::string_view signature) {
  const KeyPtr key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(public_key), public_key.size()));
  const DigestContextPtr context(EVP_MD_CTX_new());
  const bool valid =
      key != nullptr && signature.size() == kSignatureBytes &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message),
                       message.size()) == 1;
  ERR_clear_error();
  return valid;
}

}  // namespace hone::rpc
