#ifndef HONE_WORKER_CODEGEN_TENSOR_H_
#define HONE_WORKER_CODEGEN_TENSOR_H_

#include "absl/status/status.h"
#include "common/lower/lowered.h"
#include "common/target/target.h"

namespace hone::codegen {

// Unimplemented: the program uses an instruction (common/ir/intrinsic.h) that the target lacks.
absl::Status CheckIntrinsics(const lower::LoweredProgram& program, const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_TENSOR_H_
