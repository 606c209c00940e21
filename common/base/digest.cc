#include "common/base/digest.h"

#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hone {
namespace {

constexpr size_t kUsualBytes = 256;  // initial capacity; most encodings fit

}  // namespace

std::string Digest::ToHex() const {
  return absl::StrCat(absl::Hex(high, absl::kZeroPad16), absl::Hex(low, absl::kZeroPad16));
}

absl::StatusOr<Digest> Digest::FromHex(absl::string_view hex) {
  Digest digest;
  bool valid = hex.size() == 32;
  for (size_t i = 0; valid && i < hex.size(); ++i) {
    const char c = hex[i];
    int value = -1;
    if (c >= '0' && c <= '9') value = c - '0';
    if (c >= 'a' && c <= 'f') value = c - 'a' + 10;
    valid = value >= 0;
    uint64_t& half = i < 16 ? digest.high : digest.low;
    half = half << 4 | static_cast<uint64_t>(value);
  }
  if (!valid) {
    return absl::InvalidArgumentError(absl::StrCat("not a digest: '", hex.substr(0, 64),
                                                   "' (32 lower-case hex digits expected)"));
  }
  return digest;
}

Digest DigestOf(absl::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

DigestBuilder& DigestBuilder::Add(int64_t value) {
  auto bits = static_cast<uint64_t>(value);
  if constexpr (std::endian::native == std::endian::big) bits = __builtin_bswap64(bits);
  char bytes[sizeof(bits)];
  std::memcpy(bytes, &bits, sizeof(bits));
  if (bytes_.empty()) bytes_.reserve(kUsualBytes);
  bytes_.insert(bytes_.end(), bytes, bytes + sizeof(bits));
  return *this;
}

DigestBuilder& DigestBuilder::Add(absl::string_view value) {
  Add(static_cast<int64_t>(value.size()));
  bytes_.insert(bytes_.end(), value.begin(), value.end());
  return *this;
}

DigestBuilder& DigestBuilder::Add(double value) {
  if (std::isnan(value)) return Add(int64_t{0x7ff8000000000000});
  return Add(static_cast<int64_t>(std::bit_cast<uint64_t>(value)));
}

DigestBuilder& DigestBuilder::Add(const Digest& value) {
  return Add(static_cast<int64_t>(value.high)).Add(static_cast<int64_t>(value.low));
}

Digest DigestBuilder::Finish() const { return DigestOf({bytes_.data(), bytes_.size()}); }

}  // namespace hone
