#include "common/base/digest.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

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

void DigestBuilder::Reserve(size_t more) {
  bytes_.resize(std::max({kUsualBytes, 2 * bytes_.size(), size_ + more}));
}

DigestBuilder& DigestBuilder::Add(absl::string_view value) {
  Add(static_cast<int64_t>(value.size()));
  if (bytes_.size() < size_ + value.size()) Reserve(value.size());
  std::copy(value.begin(), value.end(), bytes_.begin() + static_cast<ptrdiff_t>(size_));
  size_ += value.size();
  return *this;
}

DigestBuilder& DigestBuilder::Add(double value) {
  if (std::isnan(value)) return Add(int64_t{0x7ff8000000000000});
  return Add(static_cast<int64_t>(std::bit_cast<uint64_t>(value)));
}

DigestBuilder& DigestBuilder::Add(const Digest& value) {
  return Add(static_cast<int64_t>(value.high)).Add(static_cast<int64_t>(value.low));
}

Digest DigestBuilder::Finish() const { return DigestOf({bytes_.data(), size_}); }

}  // namespace hone
