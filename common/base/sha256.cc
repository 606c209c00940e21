// EVP would read a configuration file and load modules, which sandboxed programs may not. These
// functions only compute.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "common/base/sha256.h"

#include <openssl/sha.h>

#include <array>

#include "absl/strings/escaping.h"

namespace hone {

std::string Sha256Of(absl::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(hash.data(), &context);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()));
}

}  // namespace hone
