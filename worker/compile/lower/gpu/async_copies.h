#ifndef HONE_WORKER_COMPILE_LOWER_GPU_ASYNC_COPIES_H_
#define HONE_WORKER_COMPILE_LOWER_GPU_ASYNC_COPIES_H_

#include "common/target/target.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// Whether threads of the target can copy global to shared memory without waiting for the data
// (NVIDIA GPUs from sm_80 on).
bool HasAsyncCopies(const target::Target& target);

// Makes the copies that PipelineCopies has moved ahead asynchronous. Each iteration ends a group of
// copies, and begins with a wait for the group that it uses, followed by the barrier. With n
// stages, n − 2 later groups may then be unfinished.
//   S[0] = A[0]                             async S[0] = A[0]; commit
//   for k:                                  for k:
//     barrier                          →      wait, n − 2 pending; barrier
//     S[(k + n − 1) % n] = A[k + n − 1]       async S[(k + n − 1) % n] = A[k + n − 1]; commit
//     use S[k % n]                            use S[k % n]
// Loops of another form stay as they are. REQUIRES flat indices, as AssignStorage leaves them.
void MakeCopiesAsync(LoweredProgram& program);

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_GPU_ASYNC_COPIES_H_
