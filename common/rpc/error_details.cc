#include "common/rpc/error_details.h"

#include <cstdint>
#include <vector>

#include "absl/strings/cord.h"

// Protobuf's wire form by hand: this folder has no Protobuf, and the distribution no google.rpc.
namespace hone::rpc {
namespace {

constexpr char kRetryInfo[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kErrorInfo[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kDomain[] = "hone";

void PutVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void PutNumber(int field, uint64_t value, std::string& out) {
  PutVarint(static_cast<uint64_t>(field) << 3, out);
  PutVarint(value, out);
}

void PutBytes(int field, absl::string_view bytes, std::string& out) {
  PutVarint(static_cast<uint64_t>(field) << 3 | 2, out);
  PutVarint(bytes.size(), out);
  out.append(bytes.data(), bytes.size());
}

struct Field {
  int number = 0;
  uint64_t value = 0;       // of a number
  absl::string_view bytes;  // of a text or message
};

bool TakeVarint(absl::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in[0]);
    in.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The fields of a message as far as they can be read; those of fixed size do not occur here.
std::vector<Field> Fields(absl::string_view in) {
  std::vector<Field> fields;
  uint64_t tag = 0;
  while (TakeVarint(in, tag)) {
    Field field{.number = static_cast<int>(tag >> 3)};
    if (!TakeVarint(in, field.value)) break;
    if ((tag & 7) == 2) {
      if (field.value > in.size()) break;
      field.bytes = in.substr(0, field.value);
      in.remove_prefix(field.value);
    } else if ((tag & 7) != 0) {
      break;
    }
    fields.push_back(field);
  }
  return fields;
}

std::optional<std::string> Payload(const absl::Status& status, const char* type) {
  const auto payload = status.GetPayload(type);  // Abseil has its own optional
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace

absl::Status WithRetryAfter(absl::Status status, absl::Duration wait) {
  std::string duration, info;
  PutNumber(1, absl::ToInt64Seconds(wait), duration);
  PutNumber(2, absl::ToInt64Nanoseconds(wait % absl::Seconds(1)), duration);
  PutBytes(1, duration, info);
  status.SetPayload(kRetryInfo, absl::Cord(info));
  return status;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const std::optional<std::string> info = Payload(status, kRetryInfo);
  if (!info.has_value()) return std::nullopt;
  absl::Duration wait = absl::ZeroDuration();
  for (const Field& delay : Fields(*info)) {
    if (delay.number != 1) continue;
    for (const Field& part : Fields(delay.bytes)) {
      const auto value = static_cast<int64_t>(part.value);
      if (part.number == 1) wait += absl::Seconds(value);
      if (part.number == 2) wait += absl::Nanoseconds(value);
    }
  }
  return wait;
}

absl::Status WithReason(absl::Status status, absl::string_view reason,
                        const std::map<std::string, std::string>& metadata) {
  std::string info;
  PutBytes(1, reason, info);
  PutBytes(2, kDomain, info);
  for (const auto& [name, value] : metadata) {
    std::string entry;
    PutBytes(1, name, entry);
    PutBytes(2, value, entry);
    PutBytes(3, entry, info);
  }
  status.SetPayload(kErrorInfo, absl::Cord(info));
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  const std::optional<std::string> info = Payload(status, kErrorInfo);
  if (!info.has_value()) return "";
  for (const Field& field : Fields(*info)) {
    if (field.number == 1) return std::string(field.bytes);
  }
  return "";
}

std::string EncodeDetails(const absl::Status& status) {
  std::string details;
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    std::string any;
    PutBytes(1, type, any);
    PutBytes(2, std::string(payload), any);
    PutBytes(3, any, details);
  });
  if (details.empty()) return "";
  std::string bytes;
  PutNumber(1, static_cast<uint64_t>(status.raw_code()), bytes);
  PutBytes(2, status.message(), bytes);
  return bytes + details;
}

void DecodeDetails(absl::string_view bytes, absl::Status& status) {
  for (const Field& detail : Fields(bytes)) {
    if (detail.number != 3) continue;
    absl::string_view type, payload;
    for (const Field& field : Fields(detail.bytes)) {
      if (field.number == 1) type = field.bytes;
      if (field.number == 2) payload = field.bytes;
    }
    if (!type.empty()) status.SetPayload(type, absl::Cord(payload));
  }
}

}  // namespace hone::rpc
