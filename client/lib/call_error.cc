#include "client/lib/call_error.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/tls_probe.h"

namespace hone::client {
namespace {

constexpr absl::Duration kProbeLimit = absl::Seconds(5);

}  // namespace

absl::string_view CauseOf(absl::string_view grpc_message) {
  const bool connecting = absl::StartsWith(grpc_message, "failed to connect") ||
                          absl::StartsWith(grpc_message, "DNS resolution failed");
  const size_t colon = grpc_message.rfind(": ");
  if (!connecting || colon == absl::string_view::npos) return grpc_message;
  return grpc_message.substr(colon + 2);
}

absl::Status ExplainCallError(const absl::Status& status, const std::string& address,
                              const rpc::ChannelSecurity& security) {
  if (absl::StrContains(status.message(), "http2 header with status") ||
      absl::StrContains(status.message(), "http1.x server")) {
    return absl::UnavailableError(absl::StrCat("what listens at ", address,
                                               " is not a hone-server (", status.message(),
                                               "); is the port right?"));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the server at ", address, " does not answer in time"));
  }
  if (!absl::IsUnavailable(status)) return status;
  const absl::string_view cause = CauseOf(status.message());
  if (security.tls()) {
    // gRPC does not say why an encrypted connection could not be made.
    const absl::Status found = rpc::ProbeTls(address, security, kProbeLimit).status();
    if (absl::IsFailedPrecondition(found)) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot talk to the server at ", address, ": ", found.message()));
    }
  } else if (cause == "Socket closed" || cause == "Connection reset by peer") {
    return absl::UnavailableError(
        absl::StrCat("cannot reach the server at ", address, ": ", cause,
                     "; perhaps it requires encryption: give --config FILE (client.conf of "
                     "hone-server init), or --ca FILE"));
  }
  return absl::UnavailableError(absl::StrCat("cannot reach the server at ", address, ": ", cause,
                                             "; is hone-server running there?"));
}

}  // namespace hone::client
