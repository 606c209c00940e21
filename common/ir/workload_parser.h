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
// docs/language.md describes it. A guard that compares two indices ("where k <= j") becomes one of
// the form 0 <= index < extent, which is the only form that Workload::ToText writes.
// InvalidArgument: "line:column: what is wrong", with the line and a mark (MarkText()), including
// everything that Workload::Validate rejects.
absl::StatusOr<Workload> ParseWorkload(absl::string_view text);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_WORKLOAD_PARSER_H_
