#ifndef HONE_COMMON_IR_WORKLOAD_PARSER_H_
#define HONE_COMMON_IR_WORKLOAD_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"

namespace hone::ir {

// Reads the text form, e.g.
//
//   workload dense_relu
//   input A: f32[512, 512]
//   input B: f32[512, 512] constant
//   C[i: 512, j: 512] = sum(k: 512) A[i, k] * B[k, j]
//   output D[i: 512, j: 512] = max(C[i, j], 0.0)
//
// A guard: sum(r: 3 where 0 <= h + r - 1 < 14). A tuple: (V, I)[i: 4] = argmax(k: 8) (A[i, k],
// index(k)). Casts are named like types: f32(x). A number takes the dtype of the other operand, f32
// when there is none. '#' starts a comment; a line that starts with a blank continues the one
// before. InvalidArgument: "line:column: what is wrong", with the line and a mark (text_mark.h);
// also everything that Workload::Validate refuses.
absl::StatusOr<Workload> ParseWorkload(absl::string_view text);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_WORKLOAD_PARSER_H_
