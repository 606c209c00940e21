#include "server/store/blob_codec.h"

#include <bit>
#include <cstring>

namespace hone::store {

static_assert(std::endian::native == std::endian::little, "samples are stored as they are");

std::string EncodeDecisions(const std::vector<int64_t>& decisions) {
  std::string bytes;
  bytes.reserve(decisions.size() * 2);
  for (const int64_t value : decisions) {
    uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
    for (; rest >= 0x80; rest >>= 7) bytes.push_back(static_cast<char>(rest | 0x80));
    bytes.push_back(static_cast<char>(rest));
  }
  return bytes;
}

absl::StatusOr<std::vector<int64_t>> DecodeDecisions(absl::string_view bytes) {
  std::vector<int64_t> decisions;
  uint64_t value = 0;
  int shift = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    // The tenth group may contain only bit 63, and ends the number.
    if (shift > 63 || (shift == 63 && byte > 1)) {
      return absl::DataLossError("a record's decisions hold a number of more than 64 bits");
    }
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if (byte & 0x80) continue;
    decisions.push_back(static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1));
    value = 0;
    shift = 0;
  }
  if (shift != 0) return absl::DataLossError("a record's decisions end within a number");
  return decisions;
}

std::string EncodeSamples(const std::vector<double>& samples) {
  return std::string(reinterpret_cast<const char*>(samples.data()),
                     samples.size() * sizeof(double));
}

absl::StatusOr<std::vector<double>> DecodeSamples(absl::string_view bytes) {
  if (bytes.size() % sizeof(double) != 0) {
    return absl::DataLossError("a record's samples are not a multiple of 8 bytes");
  }
  std::vector<double> samples(bytes.size() / sizeof(double));
  if (!bytes.empty()) std::memcpy(samples.data(), bytes.data(), bytes.size());
  return samples;
}

}  // namespace hone::store
