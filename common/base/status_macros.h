#ifndef HONE_COMMON_BASE_STATUS_MACROS_H_
#define HONE_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function if `expr` is an error.
#define HONE_RETURN_IF_ERROR(expr)                                \
  do {                                                            \
    if (absl::Status hone_status_ = (expr); !hone_status_.ok()) { \
      return hone_status_;                                        \
    }                                                             \
  } while (false)

#define HONE_MACRO_CONCAT_INNER_(a, b) a##b
#define HONE_MACRO_CONCAT_(a, b) HONE_MACRO_CONCAT_INNER_(a, b)

// HONE_ASSIGN_OR_RETURN(auto x, F()): x = *F(), or returns F's status.
#define HONE_ASSIGN_OR_RETURN(lhs, expr) \
  HONE_ASSIGN_OR_RETURN_IMPL_(HONE_MACRO_CONCAT_(hone_statusor_, __LINE__), lhs, expr)
#define HONE_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expr) \
  auto statusor = (expr);                                \
  if (!statusor.ok()) {                                  \
    return std::move(statusor).status();                 \
  }                                                      \
  lhs = std::move(statusor).value()

#endif  // HONE_COMMON_BASE_STATUS_MACROS_H_
