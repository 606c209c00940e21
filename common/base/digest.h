#ifndef HONE_COMMON_BASE_DIGEST_H_
#define HONE_COMMON_BASE_DIGEST_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// A persistent 128-bit hash (XXH3-128, seed 0, over a canonical little-endian encoding). Equal
// content always has the same digest, on every machine. Identifies workloads, design spaces and
// programs. What must not be forged has a SHA-256 instead (sha256.h).
struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;

  // 32 lower-case hex digits, high part first.
  std::string ToHex() const;
  // InvalidArgument: not 32 hex digits.
  static absl::StatusOr<Digest> FromHex(absl::string_view hex);

  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Digest& d) {
    return H::combine(std::move(h), d.high, d.low);
  }
};

// The digest of raw bytes.
Digest DigestOf(absl::string_view bytes);

// Collects a canonical encoding and hashes it. Integers take 8 bytes, little-endian; strings are
// preceded by their length.
class DigestBuilder {
 public:
  DigestBuilder& Add(int64_t value) {
    auto bits = static_cast<uint64_t>(value);
    if constexpr (std::endian::native == std::endian::big) bits = __builtin_bswap64(bits);
    if (bytes_.size() < size_ + sizeof(bits)) Reserve(sizeof(bits));
    std::memcpy(bytes_.data() + size_, &bits, sizeof(bits));
    size_ += sizeof(bits);
    return *this;
  }
  DigestBuilder& Add(absl::string_view value);
  DigestBuilder& Add(double value);  // bit pattern: -0.0 differs from 0.0, all NaNs are equal
  DigestBuilder& Add(const Digest& value);
  Digest Finish() const;

 private:
  // Makes room for more bytes.
  void Reserve(size_t more);

  std::vector<char> bytes_;  // the encoding, and room for more of it
  size_t size_ = 0;          // of the encoding
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_DIGEST_H_
