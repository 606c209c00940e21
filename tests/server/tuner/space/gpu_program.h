#ifndef HONE_TESTS_SERVER_TUNER_SPACE_GPU_PROGRAM_H_
#define HONE_TESTS_SERVER_TUNER_SPACE_GPU_PROGRAM_H_

#include "absl/status/status.h"
#include "common/ir/program.h"
#include "common/target/target.h"

namespace hone::space {

// A description like that of an NVIDIA A100.
target::Target Sm80();

// Checks that every nest of a program is a kernel for a GPU in the canonical form (loops over
// blocks outermost, then serial loops, then phases of threads), and recomputes its limits from the
// program: threads, shared memory, grid, widths of vectors. FailedPrecondition: names the nest and
// what is wrong.
absl::Status CheckGpuProgram(const ir::Program& program, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_TESTS_SERVER_TUNER_SPACE_GPU_PROGRAM_H_
