#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "server/job/actor/executor.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;

TEST(CatchExceptions, ReportsTypeAndMessage) {
  EXPECT_THAT(CatchExceptions([] {}), IsOk());
  const absl::Status length = CatchExceptions([] { throw std::length_error("too long"); });
  EXPECT_THAT(length,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("std::length_error: too long")));
  const absl::Status memory = CatchExceptions([] { throw std::bad_alloc(); });
  EXPECT_THAT(std::string(memory.message()), HasSubstr("std::bad_alloc"));
  EXPECT_THAT(CatchExceptions([] { throw 7; }), StatusIs(absl::StatusCode::kInternal));
}

TEST(Attempt, ReturnsTheStatusOrTheException) {
  EXPECT_THAT(Attempt([] { return absl::OkStatus(); }), IsOk());
  EXPECT_THAT(Attempt([] { return absl::NotFoundError("gone"); }),
              StatusIs(absl::StatusCode::kNotFound));
  const absl::Status threw = Attempt([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_THAT(threw, StatusIs(absl::StatusCode::kInternal, HasSubstr("std::bad_alloc")));
}

}  // namespace
}  // namespace hone::job
