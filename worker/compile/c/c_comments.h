#ifndef HONE_WORKER_COMPILE_C_C_COMMENTS_H_
#define HONE_WORKER_COMPILE_C_C_COMMENTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Comments that tell a reader of a kernel what the schedule did.

// Describes a statement if all stores in it do the same, such as "Copy A to shared memory
// (A_shared, 16 x 128)."; otherwise empty. `names`: the buffers' names.
std::string DescribeNest(const lower::LoweredProgram& program, lower::StmtId stmt,
                         const std::vector<std::string>& names);

// Describes a kernel: its blocks and threads, and the loops into which each dimension of its result
// and each reduction is split, outermost first:
//   8 x 8 blocks of 16 x 16 threads, 16384 bytes of shared memory.
//   Dimension 0 of C: 8 (by) x 16 (ty) x 8 (i_2)
//   k: 64 (k_0) x 16 (k_1)
std::vector<std::string> DescribeKernel(const lower::LoweredProgram& program,
                                        const lower::LoweredKernel& kernel);

// Removes the names of copies from the name of a loop: "A_copy.a0.A_copy.a1_0" becomes "a0_a1_0".
std::string LoopName(absl::string_view name);

// "bx", "ty" …
std::string AxisName(ir::ThreadAxis axis);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_COMMENTS_H_
