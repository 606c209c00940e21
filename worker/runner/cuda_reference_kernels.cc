#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/runner/gpu_reference_kernels.h"

namespace hone::runner {
namespace {

constexpr int kLanes = 4;

// %r3 is the thread's number in the grid, %r4 the number of threads, %rd3 where it writes.
constexpr char kText[] = R"(.version 6.4
.target sm_75
.address_size 64

.visible .entry hone_fma(.param .u64 out, .param .u64 in, .param .u32 amount)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<@REGISTERS@>;
  .reg .f32 %x, %y;
@INDEX@  mov.f32 %x, 0f3F7FBE77;
  mov.f32 %y, 0f3A83126F;
@STARTS@  mov.u32 %r6, 0;
LOOP:
  setp.ge.s32 %p, %r6, %r5;
  @%p bra DONE;
@MULTIPLY_ADDS@  add.s32 %r6, %r6, 1;
  bra LOOP;
DONE:
@SUMS@  st.global.v4.f32 [%rd3], {%f0, %f1, %f2, %f3};
  ret;
}

.visible .entry hone_stream(.param .u64 out, .param .u64 in, .param .u32 amount)
{
  .reg .pred %p;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<4>;
@INDEX@  ld.param.u64 %rd4, [in];
  cvta.to.global.u64 %rd4, %rd4;
  mov.u32 %r6, %r3;
  mov.u32 %r8, 0;
  mov.u32 %r9, 0;
  mov.u32 %r10, 0;
  mov.u32 %r11, 0;
LOOP:
  setp.ge.s32 %p, %r6, %r5;
  @%p bra DONE;
  mul.wide.u32 %rd5, %r6, 16;
  add.s64 %rd5, %rd4, %rd5;
  ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd5];
  xor.b32 %r8, %r8, %r12;
  xor.b32 %r9, %r9, %r13;
  xor.b32 %r10, %r10, %r14;
  xor.b32 %r11, %r11, %r15;
  add.s32 %r6, %r6, %r4;
  bra LOOP;
DONE:
  st.global.v4.u32 [%rd3], {%r8, %r9, %r10, %r11};
  ret;
}
)";

constexpr char kIndex[] = R"(  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r0, %r1, %r2;
  mov.u32 %r4, %nctaid.x;
  mul.lo.s32 %r4, %r4, %r1;
  ld.param.u32 %r5, [amount];
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r3, 16;
  add.s64 %rd3, %rd1, %rd2;
)";

}  // namespace

ReferenceKernels CudaReferenceKernels() {
  std::string starts, multiply_adds, sums;
  for (int i = 0; i < kLanes * kFmaChains; ++i) {
    // Each chain starts with another value, because a compiler may merge equal computations.
    absl::StrAppend(&starts, "  add.s32 %r7, %r2, ", i, ";\n  cvt.rn.f32.s32 %f", i, ", %r7;\n");
    absl::StrAppend(&multiply_adds, "  fma.rn.f32 %f", i, ", %f", i, ", %x, %y;\n");
    if (i < kLanes) continue;
    const int lane = i % kLanes;
    absl::StrAppend(&sums, "  add.f32 %f", lane, ", %f", lane, ", %f", i, ";\n");
  }
  return {absl::StrReplaceAll(kText, {{"@REGISTERS@", absl::StrCat(kLanes * kFmaChains)},
                                      {"@INDEX@", kIndex},
                                      {"@STARTS@", starts},
                                      {"@MULTIPLY_ADDS@", multiply_adds},
                                      {"@SUMS@", sums}}),
          kLanes};
}

}  // namespace hone::runner
