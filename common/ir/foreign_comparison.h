#ifndef HONE_COMMON_IR_FOREIGN_COMPARISON_H_
#define HONE_COMMON_IR_FOREIGN_COMPARISON_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ir/token_reader.h"

namespace hone::ir {

// A comparison of other languages, and how it is written here.
struct ForeignComparison {
  absl::string_view symbol;
  absl::string_view guard;  // of the indices $0 and $1; "" if no guard says the same
  absl::string_view value;  // of the values $0 and $1
};

// Null if the token is not one.
const ForeignComparison* FindForeignComparison(const Token& token);

// The error for such a comparison. Its left side begins at the position `begin`, its symbol is at
// `at`, and its right side was read last. `pattern` says how it is written here.
absl::Status MisspelledComparison(const TokenReader& reader, const Token& symbol,
                                  absl::string_view pattern, size_t begin, size_t at);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_FOREIGN_COMPARISON_H_
