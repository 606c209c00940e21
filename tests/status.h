#ifndef HONE_TESTS_STATUS_H_
#define HONE_TESTS_STATUS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Matchers for absl::Status and absl::StatusOr, with the names of absl/status/status_matchers.h,
// which Abseil has from 2024 on.
namespace hone {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
// The status of a StatusOr, or of another result that has one.
template <typename Result>
  requires requires(const Result& result) { result.status(); }
decltype(auto) StatusOf(const Result& result) {
  return result.status();
}

// Also for other types with ok(), like grpc::Status.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  if constexpr (requires { StatusOf(arg); }) {
    if (StatusOf(arg).ok()) return true;
    *result_listener << "whose status is " << StatusOf(arg);
    return false;
  } else {
    return arg.ok();
  }
}

// Matches a status by its code. `code`: a value or a matcher.
MATCHER_P(StatusIs, code, "") {
  *result_listener << "whose status is " << StatusOf(arg) << " ";
  return testing::ExplainMatchResult(code, StatusOf(arg).code(), result_listener);
}

// Matches a status by its code and its message.
MATCHER_P2(StatusIs, code, message, "") {
  *result_listener << "whose status is " << StatusOf(arg) << " ";
  return testing::ExplainMatchResult(code, StatusOf(arg).code(), result_listener) &&
         testing::ExplainMatchResult(message, std::string(StatusOf(arg).message()),
                                     result_listener);
}

}  // namespace hone

// HONE_ASSERT_OK_AND_ASSIGN(const auto value, Function()) ends the test if the StatusOr that the
// function returns is an error. Otherwise `value` is what the StatusOr has. The macro is several
// statements, and so needs braces after `if` or `for`.
#define HONE_ASSERT_OK_AND_ASSIGN(declaration, ...) \
  HONE_ASSERT_OK_AND_ASSIGN_(HONE_STATUS_NAME_(__LINE__), declaration, (__VA_ARGS__))
#define HONE_ASSERT_OK_AND_ASSIGN_(result, declaration, expression) \
  auto result = expression;                                         \
  ASSERT_THAT(result, ::hone::IsOk());                              \
  declaration = *std::move(result)
#define HONE_STATUS_NAME_(line) HONE_STATUS_NAME_OF_LINE_(line)
#define HONE_STATUS_NAME_OF_LINE_(line) status_or_of_line_##line

#endif  // HONE_TESTS_STATUS_H_
