#include "common/rpc/call_error.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/tls_probe.h"

namespace hone::rpc {
namespace {

// The beginning of gRPC's message about a failed connection.
constexpr char kConnecting[] = "failed to connect";

// Parts of gRPC's messages, and what they mean to a user.
struct Meaning {
  absl::string_view words;
  absl::string_view meaning;
};
constexpr Meaning kMeanings[] = {
    {"Connection refused", "connection refused; is hone-server running there?"},
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
