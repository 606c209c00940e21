#include "client/cli/session.h"

#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

// A connection is made at the first call, so that no server is needed here.
TEST(SessionTest, OnlyTheFirstJobIsChargedWithTheStart) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto session,
      Session::Open({.server = "127.0.0.1:1", .began = absl::Now() - absl::Seconds(7)}));
  EXPECT_GE(session->TakeStartTime(), absl::Seconds(7)) << "from the begin of the command";
  EXPECT_EQ(session->TakeStartTime(), absl::ZeroDuration());
}

}  // namespace
}  // namespace hone::cli
