#ifndef HONE_COMMON_IR_FOREIGN_COMPARISON_H_
#define HONE_COMMON_IR_FOREIGN_COMPARISON_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ir/token_reader.h"

namespace hone::ir {

// A comparison operator that the text forms lack, such as ">", and how to write it instead.
struct ForeignComparison {
  absl::string_view symbol;
  absl::string_view guard;  // for indices $0 and $1; "" if no guard is equivalent
  absl::string_view value;  // for values $0 and $1
};

// Null if the token is not such an operator.
const ForeignComparison* FindForeignComparison(const Token& token);

// The error for such a comparison. Its left side begins at the position `begin`, its symbol is at
// `at`, and its right side was read last. `pattern` says how it is written here.
absl::Status MisspelledComparison(const TokenReader& reader, const Token& symbol,
                                  absl::string_view pattern, size_t begin, size_t at);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_FOREIGN_COMPARISON_H_
