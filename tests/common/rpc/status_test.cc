#include "common/rpc/status.h"

#include <string>

#include "gtest/gtest.h"

namespace hone::rpc {
namespace {

TEST(StatusTest, EveryCodeRoundTrips) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    const grpc::Status sent = ToGrpc(status);
    // The conversion relies on the two enums having the same numbers.
    EXPECT_EQ(static_cast<int>(sent.error_code()), code);
    EXPECT_EQ(FromGrpc(sent), status);
  }
}

TEST(StatusTest, LongMessagesAreCut) {
  const grpc::Status sent = ToGrpc(absl::InternalError(std::string(100000, 'x')));
  EXPECT_EQ(sent.error_message().size(), 4000u);
}

}  // namespace
}  // namespace hone::rpc
