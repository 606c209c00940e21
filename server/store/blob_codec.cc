#include "server/store/blob_codec.h"

#include <bit>

namespace hone::store {

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
    // The tenth group holds bit 63 alone and ends the number.
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
  std::string bytes;
  bytes.reserve(samples.size() * 8);
  for (const double sample : samples) {
    const auto bits = std::bit_cast<uint64_t>(sample);
    for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
  }
  return bytes;
}

absl::StatusOr<std::vector<double>> DecodeSamples(absl::string_view bytes) {
  if (bytes.size() % 8 != 0) {
    return absl::DataLossError("a record's samples are not a multiple of 8 bytes");
  }
  std::vector<double> samples;
  samples.reserve(bytes.size() / 8);
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t bits = 0;
    for (int byte = 0; byte < 8; ++byte) {
      bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i + byte])) << (8 * byte);
    }
    samples.push_back(std::bit_cast<double>(bits));
  }
  return samples;
}

}  // namespace hone::store
