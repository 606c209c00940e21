// Products with pipelined tiles in shared memory compute right results on the emulated GPU and in
// the interpreter, for several numbers of stages, dtypes and widths of copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/verifier.h"
#include "tests/status.h"
#include "tests/worker/compile/cuda_target.h"
#include "tests/worker/compile/emulated_program.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

// $T: dtype; $P: the product; $L: lanes; $S: the step that pipelines.
constexpr char kTrace[] = R"(workload matmul
input A: $T[64, 64]
input B: $T[64, 32]
output C[i: 64, j: 32] = sum(k: 64) $P
trace 1
b0 = block("C")
b1 = cache_write(b0, "local")
li, lj, lk = loops(b0)
i0, i1, i2 = split(li, 0, 8, 4)
j0, j1, j2 = split(lj, 0, 8, 2)
k0, k1 = split(lk, 0, 8)
reorder(i0, j0, k0, i1, j1, k1, i2, j2)
bind(i0, "blockIdx.y")
bind(j0, "blockIdx.x")
bind(i1, "threadIdx.y")
bind(j1, "threadIdx.x")
b2 = cache_read(b0, "A", "shared")
compute_at(b2, k0)
q0, q1, q2, a0, a1 = loops(b2)
as = fuse(a0, a1)
as0, as1, as2, as3 = split(as, 0, 8, 8, $L)
reorder(as1, as2, as0)
bind(as1, "threadIdx.y")
bind(as2, "threadIdx.x")
vectorize(as3)
b3 = cache_read(b0, "B", "shared")
compute_at(b3, k0)
q3, q4, q5, c0, c1 = loops(b3)
cs = fuse(c0, c1)
cs0, cs1, cs2, cs3 = split(cs, 0, 8, 8, $L)
reorder(cs1, cs2, cs0)
bind(cs1, "threadIdx.y")
bind(cs2, "threadIdx.x")
vectorize(cs3)
reverse_compute_at(b1, j0)
q6, q7, w0, w1 = loops(b1)
w2, w3 = split(w0, 8, 4)
w4, w5 = split(w1, 8, 2)
reorder(w2, w4, w3, w5)
bind(w2, "threadIdx.y")
bind(w4, "threadIdx.x")
$S
)";

TEST(CudaPipelineTest, ComputesProducts) {
  std::vector<Code> codes;
  std::vector<std::shared_ptr<const ir::Workload>> workloads;
  std::vector<std::vector<ir::Scalars>> inputs, outputs;
  std::vector<std::string> names;
  int with_copies = 0;
  for (const absl::string_view dtype : {"f32", "f64", "f16", "i8"}) {
    for (const int lanes : {1, 2}) {
      for (const absl::string_view step :
           {"double_buffer(b2)\ndouble_buffer(b3)", "double_buffer(b2)", "software_pipeline(k0, 2)",
            "software_pipeline(k0, 3)", "software_pipeline(k0, 4)", "software_pipeline(k0, 8)"}) {
        const std::string text = absl::StrReplaceAll(
            kTrace, {{"$T", dtype},
                     {"$P", dtype == "i8" ? "i32(A[i, k]) * i32(B[k, j])" : "A[i, k] * B[k, j]"},
                     {"$L", absl::StrCat(lanes)},
                     {"$S", step}});
        const std::string& name = names.emplace_back(absl::StrCat(dtype, " x ", lanes, " ", step));
        HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(text));
        workloads.push_back(program.shared_workload());
        std::vector<ir::Scalars>& input = inputs.emplace_back();
        int next = 1;
        for (const ir::BufferId id : workloads.back()->Inputs()) {
          const ir::Tensor& tensor = workloads.back()->tensors[id];
          ir::Scalars& values = input.emplace_back();
          for (int64_t e = 0; e < ir::ElementsOf(tensor.shape); ++e) {
            values.push_back(ir::CastTo(tensor.dtype, ir::Scalar(next % 7 - 3.0)));
            next = next * 31 % 1009;
          }
        }
        HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(*workloads.back(), input));
        outputs.push_back(expected);
        const auto lowered = lower::Lower(program, CudaTarget());
        ASSERT_THAT(lowered, IsOk()) << name;
        ASSERT_THAT(lower::Verify(*lowered), IsOk()) << name;
        // The interpreter is slow.
        if (dtype == "f32" && lanes == 1) {
          const auto interpreted = lower::Interpret(
              *lowered, *workloads.back(), input, int64_t{1} << 32, lower::ThreadOrder::kShuffled);
          ASSERT_THAT(interpreted, IsOk()) << lowered->ToText();
          EXPECT_EQ(*interpreted, expected) << name;
        }
        auto code = Generate(*lowered, CudaTarget());
        ASSERT_THAT(code, IsOk()) << name;
        with_copies += absl::StrContains(code->bytes, "hone_copy_async") ? 1 : 0;
        codes.push_back(*std::move(code));
      }
    }
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto programs, EmulatedPrograms::Build(std::move(codes)));
  for (size_t p = 0; p < workloads.size(); ++p) {
    for (const auto order : {cuda::EmulatedOrder::kForward, cuda::EmulatedOrder::kBackward,
                             cuda::EmulatedOrder::kRandom}) {
      const auto actual = programs->Run(p, *workloads[p], inputs[p], order);
      ASSERT_THAT(actual, IsOk()) << names[p] << programs->code(p).bytes;
      EXPECT_EQ(*actual, outputs[p]) << names[p] << programs->code(p).bytes;
    }
  }
  std::cout << with_copies << " of " << workloads.size() << " programs copy asynchronously\n";
  EXPECT_GE(with_copies, 20);
}

}  // namespace
}  // namespace hone::codegen
