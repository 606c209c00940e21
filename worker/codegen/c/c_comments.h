#ifndef HONE_WORKER_CODEGEN_C_C_COMMENTS_H_
#define HONE_WORKER_CODEGEN_C_C_COMMENTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/lower/lowered.h"

namespace hone::codegen {

// Comments that tell a reader of a kernel what the schedule did.

// What a statement does, if all stores in it do the same, such as "Copy A to shared memory
// (A_shared, 16 x 128)."; else empty. `names`: of the buffers.
std::string DescribeNest(const lower::LoweredProgram& program, lower::StmtId stmt,
                         const std::vector<std::string>& names);

// Lines about a kernel: its blocks and threads, and the loops that the dimensions of its result and
// of reductions are divided into, outermost first:
//   8 x 8 blocks of 16 x 16 threads, 16384 bytes of shared memory.
//   Dimension 0 of C: 8 (by) x 16 (ty) x 8 (i_2)
//   k: 64 (k_0) x 16 (k_1)
std::vector<std::string> DescribeKernel(const lower::LoweredProgram& program,
                                        const lower::LoweredKernel& kernel);

// The name of a loop without those of the copies that it belongs to: "A_copy.a0.A_copy.a1_0" is
// "a0_a1_0".
std::string LoopName(absl::string_view name);

// "bx", "ty" …
std::string AxisName(ir::ThreadAxis axis);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_C_COMMENTS_H_
