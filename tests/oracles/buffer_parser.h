#ifndef HONE_TESTS_ORACLES_BUFFER_PARSER_H_
#define HONE_TESTS_ORACLES_BUFFER_PARSER_H_

#include "absl/status/statusor.h"
#include "common/ir/program.h"
#include "common/ir/token_reader.h"

namespace hone::ir {

// Parses a buffer line of a program's text: "buffer C: f32[2, 4] local constant padded align 0 8
// 1". An input or output must be one of the workload's. InvalidArgument: "line:column: what is
// wrong".
absl::StatusOr<Buffer> ParseBuffer(TokenReader& reader, const Workload& workload);

}  // namespace hone::ir

#endif  // HONE_TESTS_ORACLES_BUFFER_PARSER_H_
