#ifndef HONE_COMMON_IR_TEXT_MARK_H_
#define HONE_COMMON_IR_TEXT_MARK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hone::ir {

// Appends to an error of the form "line:column: what" the line of the text that it is about, with
// the column marked:
//
//   3:22: a product of two axes is not affine
//     output B[i: 4] = A[i * i]
//                          ^
//
// Of a long line the part around the column. `first_line`: the number of the text's first line. OK
// and errors of another form stay as they are.
absl::Status MarkText(const absl::Status& status, absl::string_view text, int first_line = 1);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_TEXT_MARK_H_
