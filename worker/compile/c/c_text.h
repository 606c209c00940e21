#ifndef HONE_WORKER_COMPILE_C_C_TEXT_H_
#define HONE_WORKER_COMPILE_C_C_TEXT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hone::codegen {

// How tightly the outermost operator of a text binds, loosest first. `!` counts as a comparison,
// because compilers warn of `!a == b`.
enum class CBinding : uint8_t {
  kConditional,
  kOr,
  kAnd,
  kComparison,
  kSum,
  kProduct,
  kUnary,
  kPrimary
};

// The text of an expression.
struct CText {
  std::string text;
  CBinding binding = CBinding::kPrimary;

  // Returns the text as an operand, in parentheses if it binds less tightly than `least`.
  std::string Within(CBinding least) const {
    return binding < least ? absl::StrCat("(", text, ")") : text;
  }
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_TEXT_H_
