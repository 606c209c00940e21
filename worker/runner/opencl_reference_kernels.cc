#include "absl/strings/str_cat.h"
#include "worker/runner/gpu_reference_kernels.h"

namespace hone::runner {
namespace {

// Eight independent chains of LANES lanes hide the latency of multiply-adds. The threads of a block
// read parts of the stream: next to each other on a GPU, one after the other on a CPU.
constexpr char kReferenceKernels[] = R"(
#define FLOATS_(n) float##n
#define FLOATS(n) FLOATS_(n)
#ifdef FP_FAST_FMAF
#define MULTIPLY_ADD fma
#else
#define MULTIPLY_ADD mad
#endif
typedef FLOATS(LANES) floats;
kernel void hone_fma(global float4* out, global const uint4* in, int amount) {
  floats a = (floats)(get_local_id(0)), b = a + 1, c = a + 2, d = a + 3;
  floats e = a + 4, f = a + 5, g = a + 6, h = a + 7;
  const floats x = (floats)(0.999f), y = (floats)(0.001f);
  for (int i = 0; i < amount; ++i) {
    a = MULTIPLY_ADD(a, x, y); b = MULTIPLY_ADD(b, x, y); c = MULTIPLY_ADD(c, x, y); d = MULTIPLY_ADD(d, x, y);
    e = MULTIPLY_ADD(e, x, y); f = MULTIPLY_ADD(f, x, y); g = MULTIPLY_ADD(g, x, y); h = MULTIPLY_ADD(h, x, y);
  }
  const floats sum = a + b + c + d + e + f + g + h;
  out[get_global_id(0)] = vload4(0, (const private float*)&sum);
}
kernel void hone_stream(global float4* out, global const uint4* in, int amount) {
  uint4 sum = (uint4)(0);
#if IN_TURN
  const int part = amount / get_global_size(0), begin = get_global_id(0) * part;
  for (int i = begin; i < begin + part; ++i) sum ^= in[i];
#else
  for (int i = get_global_id(0); i < amount; i += get_global_size(0)) sum ^= in[i];
#endif
  out[get_global_id(0)] = convert_float4(sum);
}
)";
constexpr int kGpuLanes = 4, kCpuLanes = 16;

}  // namespace

ReferenceKernels OpenClReferenceKernels(bool is_cpu) {
  const int lanes = is_cpu ? kCpuLanes : kGpuLanes;
  return {absl::StrCat("#define LANES ", lanes, "\n#define IN_TURN ", is_cpu ? 1 : 0, "\n",
                       kReferenceKernels),
          lanes};
}

}  // namespace hone::runner
