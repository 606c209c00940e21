#include "common/rpc/status.h"

#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/tls_probe.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/unknown_field_set.h"

namespace hone::rpc {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr size_t kMaxMessage = 4000;

// The messages of google.rpc are built field by field, because the distribution has no headers for
// them.

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

// The beginning of gRPC's message about a failed connection.
constexpr char kConnecting[] = "failed to connect";

// Parts of gRPC's messages, and what they mean to a user.
struct Meaning {
  absl::string_view words;
  absl::string_view meaning;
};
constexpr Meaning kMeanings[] = {
    {"Connection refused", "connection refused; is hone-server running there?"},
    {"backend unhealthy",
     "none of the servers there leads yet, or it cannot reach its database; try again later"},
    {"No such file or directory", "the socket does not exist; is hone-server running there?"},
    {"Permission denied", "permission denied; another user started that server"},
    {"DNS resolution failed", "the host is not known; is its name right?"},
    {"No route to host", "no route to the host"},
    {"Network is unreachable", "the network is unreachable"},
    {"timed out", "no answer from the host; is the address right, or does a firewall block it?"},
    {"Socket closed", "the connection was lost"},
    {"Connection reset by peer", "the connection was lost"},
};

// Returns the cause at the end of a message about a failed connection, such as "last error:
// UNKNOWN: ipv4:127.0.0.1:7070: Failed to connect to remote host: Connection refused". Other
// messages are returned unchanged.
absl::string_view CauseOf(absl::string_view message) {
  const size_t colon = message.rfind(": ");
  if (!absl::StartsWith(message, kConnecting) || colon == absl::string_view::npos) return message;
  return message.substr(colon + 2);
}

std::string WhyUnreachable(absl::string_view message, const ChannelSecurity& security) {
  const absl::string_view cause = CauseOf(message);
  const bool hung_up = cause == "Socket closed" || cause == "Connection reset by peer";
  // A server that requires encryption closes unencrypted connections.
  if (!security.tls() && hung_up && absl::StartsWith(message, kConnecting)) {
    return "the server closed the connection; perhaps it requires encryption: give --config FILE "
           "(client.conf from hone-server init or, for a worker, the file from hone worker-config) "
           "or --ca FILE";
  }
  for (const Meaning& entry : kMeanings) {
    if (absl::StrContains(message, entry.words)) return std::string(entry.meaning);
  }
  return std::string(cause);
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kMaxMessage)), EncodeDetails(status));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  DecodeDetails(status.error_details(), result);
  return result;
}

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

std::string ReasonOf(const absl::Status& status) {
  const std::vector<std::string> reasons = FirstOf(status, kErrorInfo);
  return reasons.empty() ? "" : reasons[0];
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

absl::Status ExplainCallError(const absl::Status& status, absl::string_view address,
                              const ChannelSecurity& security, absl::Duration probe_limit) {
  const absl::string_view message = status.message();
  if (absl::StrContains(message, "http2 header with status") ||
      absl::StrContains(message, "http1.x server") ||
      absl::StrContains(message, "Failed parsing HTTP/2")) {
    return absl::UnavailableError(absl::StrCat("the program that listens at ", address,
                                               " is not a hone-server; is the port right?"));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the server at ", address, " does not answer in time"));
  }
  if (!absl::IsUnavailable(status)) return status;
  if (security.tls() && probe_limit > absl::ZeroDuration()) {
    const absl::Status found = ProbeTls(address, security, probe_limit).status();
    if (absl::IsFailedPrecondition(found)) {
      return absl::UnavailableError(
          absl::StrCat("cannot talk to the server at ", address, ": ", found.message()));
    }
  }
  // Another reason why the next connection would fail.
  const absl::Status own = CheckOwnLifetime(security, absl::Now());
  return absl::UnavailableError(
      absl::StrCat("cannot reach the server at ", address, ": ", WhyUnreachable(message, security),
                   own.ok() ? "" : absl::StrCat("; besides, ", own.message())));
}

}  // namespace hone::rpc
