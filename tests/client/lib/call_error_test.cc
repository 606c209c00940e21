#include "client/lib/call_error.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Status Explained(const absl::Status& status) {
  return ExplainCallError(status, "host:1", {});
}

TEST(CauseOfTest, IsTheEndOfGrpcsMessage) {
  EXPECT_EQ(CauseOf("failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
                    "Failed to connect to remote host: Connection refused"),
            "Connection refused");
  EXPECT_EQ(CauseOf("failed to connect to all addresses; last error: UNKNOWN: "
                    "unix:/tmp/%C3%A4.sock: No such file or directory"),
            "No such file or directory");
  EXPECT_EQ(CauseOf("the server is draining: try later"), "the server is draining: try later");
}

TEST(ExplainCallErrorTest, AServerThatHangsUpOnPlainTextMayRequireEncryption) {
  for (const char* cause : {"Socket closed", "Connection reset by peer"}) {
    const absl::Status status = Explained(absl::UnavailableError(
        std::string("failed to connect to all addresses; last error: UNAVAILABLE: ") + cause));
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("host:1"), HasSubstr("encryption"), HasSubstr("--ca")));
  }
  EXPECT_THAT(std::string(Explained(absl::UnavailableError("Connection refused")).message()),
              AllOf(HasSubstr("is hone-server running there?"), Not(HasSubstr("encryption"))));
}

TEST(ExplainCallErrorTest, ErrorsOfTheServerStay) {
  for (const absl::Status& status : {absl::NotFoundError("no job"), absl::OkStatus()}) {
    EXPECT_EQ(Explained(status), status);
  }
}

}  // namespace
}  // namespace hone::client
