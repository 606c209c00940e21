#include "common/rpc/secret.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"

namespace hone::rpc {
namespace {

constexpr size_t kTokenBytes = 32;

}  // namespace

absl::StatusOr<std::string> RandomToken() {
  std::array<unsigned char, kTokenBytes> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return absl::InternalError("the system cannot generate random numbers");
  }
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string HashToken(absl::string_view token) { return Sha256Of(token); }

bool EqualSecrets(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & S_IRWXO) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path,
        " holds a secret, and every user of this machine can read or change it; run chmod 600 ",
        path));
  }
  HONE_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  return std::string(absl::StripAsciiWhitespace(content));
}

}  // namespace hone::rpc
