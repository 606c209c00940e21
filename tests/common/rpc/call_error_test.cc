#include <string>

#include "common/rpc/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::rpc {
namespace {

using ::testing::HasSubstr;

constexpr char kServer[] = "hone.internal:7070";

std::string Explain(const std::string& message, const ChannelSecurity& security = {}) {
  const absl::Status status = ExplainCallError(absl::UnavailableError(message), kServer, security,
                                               /*probe_limit=*/absl::ZeroDuration());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  return std::string(status.message());
}

// Messages as gRPC 1.51 writes them.
TEST(CallErrorTest, AKnownCauseIsOneSentence) {
  EXPECT_EQ(Explain("failed to connect to all addresses; last error: UNKNOWN: "
                    "ipv4:127.0.0.1:7070: Failed to connect to remote host: Connection refused"),
            "cannot reach the server at hone.internal:7070: connection refused; is hone-server "
            "running there?");
  EXPECT_EQ(Explain("DNS resolution failed for hone.internal:7070: C-ares status is not "
                    "ARES_SUCCESS qtype=A name=hone.internal is_balancer=0: Domain name not found"),
            "cannot reach the server at hone.internal:7070: the host is not known; is its name "
            "right?");
  EXPECT_EQ(Explain("failed to connect to all addresses; last error: UNKNOWN: "
                    "unix:/tmp/%C3%A4.sock: Too many open files"),
            "cannot reach the server at hone.internal:7070: Too many open files");
  EXPECT_EQ(Explain("the server is starting"),
            "cannot reach the server at hone.internal:7070: the server is starting");
}

TEST(CallErrorTest, AnotherProgramAtTheAddressIsNamed) {
  for (const std::string message :
       {"Trying to connect an http1.x server", "Received http2 header with status: 404",
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:8000: "
        "Failed parsing HTTP/2"}) {
    EXPECT_EQ(Explain(message),
              "the program that listens at hone.internal:7070 is not a "
              "hone-server; is the port right?");
  }
}

TEST(CallErrorTest, HangUpOnPlaintextSuggestsEncryption) {
  for (const std::string cause : {"Socket closed", "Connection reset by peer"}) {
    const std::string hung_up =
        "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:7070: " +
        cause;
    EXPECT_THAT(Explain(hung_up), HasSubstr("perhaps it requires encryption"));
    EXPECT_THAT(Explain(hung_up, {.ca = "system"}), HasSubstr("the connection was lost"));
  }
  EXPECT_THAT(Explain("Socket closed"), HasSubstr("the connection was lost"))
      << "a call was in progress: the server has ended";
}

TEST(CallErrorTest, ServerErrorsAreUnchanged) {
  const absl::Status refused =
      WithReason(absl::UnauthenticatedError("the token is unknown"), "TOKEN_UNKNOWN");
  EXPECT_EQ(ExplainCallError(refused, kServer, {}, absl::ZeroDuration()), refused);
  EXPECT_EQ(ExplainCallError(absl::DeadlineExceededError("Deadline Exceeded"), kServer, {},
                             absl::ZeroDuration())
                .message(),
            "the server at hone.internal:7070 does not answer in time");
}

}  // namespace
}  // namespace hone::rpc
