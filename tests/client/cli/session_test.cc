#include "client/cli/session.h"

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

// A connection is made at the first call, so that no server is needed here.
TEST(SessionTest, OnlyTheFirstJobIsChargedWithTheStart) {
  const auto session = Session::Open({.server = "127.0.0.1:1"});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_GT((*session)->TakeStartTime(), absl::ZeroDuration());
  EXPECT_EQ((*session)->TakeStartTime(), absl::ZeroDuration());
}

}  // namespace
}  // namespace hone::cli
