#ifndef HONE_TESTS_WORKER_COMPILE_LOWER_GPU_TRACE_H_
#define HONE_TESTS_WORKER_COMPILE_LOWER_GPU_TRACE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"
#include "worker/compile/lower/lowered.h"

// Traces for GPUs that tests write by hand.
namespace hone::lower {

struct GpuTrace {
  std::shared_ptr<const ir::Workload> workload;
  absl::StatusOr<LoweredProgram> program;
};
// Lowers the program of a trace file for generic/opencl, with shuffles between this many threads.
GpuTrace LowerTrace(absl::string_view text, int shuffle_width = 1);

// 16 x 16 results per block of 8 x 8 threads, four per thread; both operands in shared memory.
inline constexpr char kTiledMatmul[] = R"(workload matmul
input A: f32[32, 24]
input B: f32[24, 48]
output C[i: 32, j: 48] = sum(k: 24) A[i, k] * B[k, j]
trace 1
b0 = block("C")
b1 = cache_write(b0, "local")
li, lj, lk = loops(b0)
i0, i1, i2 = split(li, 0, 8, 2)
j0, j1, j2 = split(lj, 0, 8, 2)
k0, k1 = split(lk, 0, 8)
reorder(i0, j0, k0, i1, j1, k1, i2, j2)
bind(i0, "blockIdx.y")
bind(j0, "blockIdx.x")
bind(i1, "threadIdx.y")
bind(j1, "threadIdx.x")
unroll(i2)
unroll(j2)
b2 = cache_read(b0, "A", "shared")
compute_at(b2, k0)
q0, q1, q2, a0, a1 = loops(b2)
as = fuse(a0, a1)
as0, as1, as2 = split(as, 0, 8, 8)
reorder(as1, as2, as0)
bind(as1, "threadIdx.y")
bind(as2, "threadIdx.x")
b3 = cache_read(b0, "B", "shared")
compute_at(b3, k0)
q3, q4, q5, c0, c1 = loops(b3)
cs = fuse(c0, c1)
cs0, cs1, cs2 = split(cs, 0, 8, 8)
reorder(cs1, cs2, cs0)
bind(cs1, "threadIdx.y")
bind(cs2, "threadIdx.x")
reverse_compute_at(b1, j0)
q6, q7, w0, w1 = loops(b1)
w2, w3 = split(w0, 8, 2)
w4, w5 = split(w1, 8, 2)
reorder(w2, w4, w3, w5)
bind(w2, "threadIdx.y")
bind(w4, "threadIdx.x")
)";

}  // namespace hone::lower

#endif  // HONE_TESTS_WORKER_COMPILE_LOWER_GPU_TRACE_H_
