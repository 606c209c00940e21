#include "common/record/given_inputs.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"

namespace hone::record {
namespace {

constexpr absl::string_view kMagic = "HONEINP1";

void AddNumber(std::string& bytes, uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> 8 * i));
}

}  // namespace

std::string EncodeGivenInputs(const std::map<int, std::string>& inputs) {
  std::string bytes(kMagic);
  AddNumber(bytes, inputs.size());
  for (const auto& [number, elements] : inputs) {
    AddNumber(bytes, static_cast<uint64_t>(number));
    AddNumber(bytes, elements.size());
  }
  for (const auto& [number, elements] : inputs) absl::StrAppend(&bytes, elements);
  return bytes;
}

absl::StatusOr<GivenInputs> DecodeGivenInputs(absl::string_view bytes) {
  const auto malformed = [] {
    return absl::InvalidArgumentError("the data to measure on are malformed");
  };
  const auto take = [&bytes](uint64_t& value) {
    if (bytes.size() < 8) return false;
    value = 0;
    for (int i = 0; i < 8; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
    bytes.remove_prefix(8);
    return true;
  };
  if (bytes.substr(0, kMagic.size()) != kMagic) return malformed();
  bytes.remove_prefix(kMagic.size());
  uint64_t count = 0;
  if (!take(count) || count > bytes.size() / 16) return malformed();
  std::vector<std::pair<uint64_t, uint64_t>> entries(count);
  for (auto& [number, size] : entries) {
    if (!take(number) || !take(size) || number > (1 << 20)) return malformed();
  }
  GivenInputs inputs;
  for (const auto& [number, size] : entries) {
    if (size > bytes.size()) return malformed();
    if (!inputs.emplace(static_cast<int>(number), bytes.substr(0, size)).second) return malformed();
    bytes.remove_prefix(size);
  }
  if (!bytes.empty()) return malformed();
  return inputs;
}

std::string ReferenceKey(absl::string_view workload_digest, absl::string_view given_digest) {
  if (given_digest.empty()) return std::string(workload_digest);
  return DigestOf(absl::StrCat(workload_digest, given_digest)).ToHex();
}

bool AreGiven(absl::string_view inputs) { return IsSha256(inputs); }

}  // namespace hone::record
