#include "common/rpc/error_details.h"

#include <vector>

#include "absl/strings/cord.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/unknown_field_set.h"

// The messages of google.rpc are built field by field, because the distribution has no headers for
// them.
namespace hone::rpc {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr char kRetryInfo[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kErrorInfo[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kDomain[] = "hone";

void Put(int field, absl::string_view bytes, UnknownFieldSet& message) {
  message.AddLengthDelimited(field, std::string(bytes));
}

std::string Serialize(const UnknownFieldSet& message) {
  std::string bytes;
  message.SerializeToString(&bytes);
  return bytes;
}

// Returns the texts and messages in a field of a message. A malformed message has none.
std::vector<std::string> BytesOf(absl::string_view bytes, int field) {
  UnknownFieldSet message;
  message.ParseFromString(std::string(bytes));
  std::vector<std::string> values;
  for (int i = 0; i < message.field_count(); ++i) {
    const UnknownField& found = message.field(i);
    if (found.number() == field && found.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
      values.push_back(found.length_delimited());
    }
  }
  return values;
}

// Returns the contents of field 1 of the payload of this type.
std::vector<std::string> FirstOf(const absl::Status& status, const char* type) {
  const auto payload = status.GetPayload(type);
  if (!payload.has_value()) return {};
  return BytesOf(std::string(*payload), 1);
}

}  // namespace

absl::Status WithRetryAfter(absl::Status status, absl::Duration wait) {
  google::protobuf::Duration delay;
  delay.set_seconds(absl::ToInt64Seconds(wait));
  delay.set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(wait % absl::Seconds(1))));
  UnknownFieldSet info;
  Put(1, delay.SerializeAsString(), info);
  status.SetPayload(kRetryInfo, absl::Cord(Serialize(info)));
  return status;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  google::protobuf::Duration delay;
  const std::vector<std::string> delays = FirstOf(status, kRetryInfo);
  if (delays.empty() || !delay.ParseFromString(delays[0])) return std::nullopt;
  return absl::Seconds(delay.seconds()) + absl::Nanoseconds(delay.nanos());
}

absl::Status WithReason(absl::Status status, absl::string_view reason,
                        const std::map<std::string, std::string>& metadata) {
  UnknownFieldSet info;
  Put(1, reason, info);
  Put(2, kDomain, info);
  for (const auto& [name, value] : metadata) {
    UnknownFieldSet entry;
    Put(1, name, entry);
    Put(2, value, entry);
    Put(3, Serialize(entry), info);
  }
  status.SetPayload(kErrorInfo, absl::Cord(Serialize(info)));
  return status;
}

std::string EncodeDetails(const absl::Status& status) {
  UnknownFieldSet message;
  message.AddVarint(1, static_cast<uint64_t>(status.raw_code()));
  Put(2, status.message(), message);
  bool any = false;
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    google::protobuf::Any detail;
    detail.set_type_url(std::string(type));
    detail.set_value(std::string(payload));
    Put(3, detail.SerializeAsString(), message);
    any = true;
  });
  return any ? Serialize(message) : "";
}

void DecodeDetails(absl::string_view bytes, absl::Status& status) {
  for (const std::string& detail : BytesOf(bytes, 3)) {
    google::protobuf::Any any;
    if (!any.ParseFromString(detail) || any.type_url().empty()) continue;
    status.SetPayload(any.type_url(), absl::Cord(any.value()));
  }
}

}  // namespace hone::rpc
