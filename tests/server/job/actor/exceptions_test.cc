#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "server/job/actor/executor.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;

TEST(CatchExceptions, ReportsTypeAndMessage) {
  EXPECT_TRUE(CatchExceptions([] {}).ok());
  const absl::Status length = CatchExceptions([] { throw std::length_error("too long"); });
  EXPECT_EQ(length.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(length.message()), HasSubstr("std::length_error: too long"));
  const absl::Status memory = CatchExceptions([] { throw std::bad_alloc(); });
  EXPECT_THAT(std::string(memory.message()), HasSubstr("std::bad_alloc"));
  EXPECT_EQ(CatchExceptions([] { throw 7; }).code(), absl::StatusCode::kInternal);
}

TEST(Attempt, ReturnsTheStatusOrTheException) {
  EXPECT_TRUE(Attempt([] { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(absl::IsNotFound(Attempt([] { return absl::NotFoundError("gone"); })));
  const absl::Status threw = Attempt([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(threw.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(threw.message()), HasSubstr("std::bad_alloc"));
}

}  // namespace
}  // namespace hone::job
