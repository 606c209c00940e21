#ifndef HONE_COMMON_IR_WORKLOAD_PARSER_H_
#define HONE_COMMON_IR_WORKLOAD_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"

namespace hone::ir {

// Parses the text form of a workload, e.g.
//
//   workload dense_relu
//   input A: f32[512, 512]
//   input B: f32[512, 512] constant
//   C[i: 512, j: 512] = sum(k: 512) A[i, k] * B[k, j]
//   output D[i: 512, j: 512] = max(C[i, j], 0.0)
//
// A guard: sum(r: 3 where 0 <= h + r - 1 < 14). A tuple: (V, I)[i: 4] = argmax(k: 8) (A[i, k],
// index(k)). Casts are named after types: f32(x). A number takes the dtype of the other operand, or
// f32 if there is none. '#' starts a comment; a line that begins with a space continues the
// previous one. InvalidArgument: "line:column: what is wrong", with the line and a mark
// (text_mark.h), including everything that Workload::Validate rejects.
absl::StatusOr<Workload> ParseWorkload(absl::string_view text);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_WORKLOAD_PARSER_H_
