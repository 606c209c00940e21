#ifndef HONE_COMMON_IR_TEXT_MARK_H_
#define HONE_COMMON_IR_TEXT_MARK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hone::ir {

// Appends the offending line to an error of the form "line:column: what" and marks the column:
//
//   3:22: a product of two axes is not affine
//     output B[i: 4] = A[i * i]
//                          ^
//
// Long lines are cut around the column. `first_line` is the number of the text's first line. OK and
// errors of another form are returned unchanged.
absl::Status MarkText(const absl::Status& status, absl::string_view text, int first_line = 1);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_TEXT_MARK_H_
