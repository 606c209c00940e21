// Workloads of several stages with elementary functions (softmax, layer norm, gelu) through
// lowering, code generation and the linker.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/llvm/compile.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

using ir::Values;

constexpr absl::string_view kSoftmax = R"(workload softmax
input X: f32[24, 77]
M[i0: 24] = max(k0: 77) X[i0, k0]
E[i1: 24, k1: 77] = exp(X[i1, k1] - M[i1])
S[i2: 24] = sum(k2: 77) E[i2, k2]
output Y[i3: 24, k3: 77] = E[i3, k3] / S[i3]
)";

// The lanes are rows in the reductions and columns in the other stages.
constexpr absl::string_view kSoftmaxTrace = R"(trace 1
b0 = block("M")
l0, l1 = loops(b0)
l2, l3 = split(l0, 0, 8)
reorder(l2, l1, l3)
vectorize(l3)
b1 = block("E")
l4, l5 = loops(b1)
l6, l7 = split(l5, 0, 16)
vectorize(l7)
b2 = block("S")
l8, l9 = loops(b2)
l10, l11 = split(l8, 0, 8)
reorder(l10, l9, l11)
vectorize(l11)
b3 = block("Y")
l12, l13 = loops(b3)
l14, l15 = split(l13, 0, 16)
vectorize(l15)
parallel(l12)
)";

// Each row is computed separately, with columns as lanes in every stage. The partial results of the
// lanes are combined at the end of a row.
constexpr absl::string_view kSoftmaxRowTrace = R"(trace 1
y = block("Y")
i, j = loops(y)
j0, j1 = split(j, 0, 32)
s = block("S")
compute_at(s, i)
s0, s1, s2 = loops(s)
s3, s4 = split(s2, 0, 32)
sp = rfactor(s, s4)
vectorize(s4)
s5, s6, s7 = loops(s)
vectorize(s7)
e = block("E")
compute_at(e, i)
e0, e1, e2 = loops(e)
e3, e4 = split(e2, 0, 32)
vectorize(e4)
m = block("M")
compute_at(m, i)
m0, m1, m2 = loops(m)
m3, m4 = split(m2, 0, 32)
mp = rfactor(m, m4)
vectorize(m4)
m5, m6, m7 = loops(m)
vectorize(m7)
vectorize(j1)
parallel(i)
)";

constexpr absl::string_view kOnlineSoftmax = R"(workload softmax
input X: f32[24, 77]
(M, S)[i0: 24] = online_softmax(k0: 77) (X[i0, k0], 1.0)
output Y[i1: 24, k1: 77] = exp(X[i1, k1] - M[i1]) / S[i1]
)";
constexpr absl::string_view kOnlineSoftmaxTrace = R"(trace 1
b0 = block("M")
l0, l1 = loops(b0)
l2, l3 = split(l0, 0, 8)
reorder(l2, l1, l3)
vectorize(l3)
b1 = block("Y")
l4, l5 = loops(b1)
l6, l7 = split(l5, 0, 16)
vectorize(l7)
)";

constexpr absl::string_view kLayerNorm = R"(workload layer_norm
input X: f32[24, 77]
input gamma: f32[77] constant
input beta: f32[77] constant
S[i0: 24] = sum(k0: 77) X[i0, k0]
Q[i1: 24] = sum(k1: 77) (X[i1, k1] - S[i1] / 77) * (X[i1, k1] - S[i1] / 77)
output Y[i2: 24, k2: 77] = (X[i2, k2] - S[i2] / 77) * rsqrt(Q[i2] / 77 + 0.00001) * gamma[k2] + beta[k2]
)";
constexpr absl::string_view kLayerNormTrace = R"(trace 1
b0 = block("S")
l0, l1 = loops(b0)
l2, l3 = split(l0, 0, 8)
reorder(l2, l1, l3)
vectorize(l3)
b1 = block("Q")
l4, l5 = loops(b1)
l6, l7 = split(l4, 0, 8)
reorder(l6, l5, l7)
vectorize(l7)
b2 = block("Y")
l8, l9 = loops(b2)
l10, l11 = split(l9, 0, 16)
vectorize(l11)
)";

constexpr absl::string_view kGelu = R"(workload gelu
input X: f32[24, 77]
output Y[i: 24, j: 77] = X[i, j] * 0.5 * (1 + erf(X[i, j] * 0.70710678118654752))
output T[i: 24, j: 77] = X[i, j] * 0.5 * (1 + tanh(0.79788456080286536 * (X[i, j] + 0.044715 * X[i, j] * X[i, j] * X[i, j])))
output W[i: 24, j: 77] = X[i, j] * sigmoid(X[i, j])
)";
constexpr absl::string_view kGeluTrace = R"(trace 1
b0 = block("Y")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 16)
vectorize(l3)
b1 = block("T")
l4, l5 = loops(b1)
l6, l7 = split(l5, 0, 16)
vectorize(l7)
b2 = block("W")
l8, l9 = loops(b2)
l10, l11 = split(l9, 0, 16)
vectorize(l11)
parallel(l8)
)";

struct Row {
  absl::string_view name, workload, trace;
};
const Row kRows[] = {{"softmax", kSoftmax, kSoftmaxTrace},
                     {"softmax_row", kSoftmax, kSoftmaxRowTrace},
                     {"online_softmax", kOnlineSoftmax, kOnlineSoftmaxTrace},
                     {"layer_norm", kLayerNorm, kLayerNormTrace},
                     {"gelu", kGelu, kGeluTrace}};

class RowWorkloadTest : public testing::TestWithParam<Row> {};

TEST_P(RowWorkloadTest, AgreesWithTheInterpreter) {
  const Row& row = GetParam();
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(row.workload));
  std::vector<Values> inputs;
  Rng rng(5, 0);
  for (const ir::BufferId id : workload.Inputs()) {
    Values& values = inputs.emplace_back();
    for (int64_t i = 0; i < ir::ElementsOf(workload.tensors[id].shape); ++i) {
      values.push_back(static_cast<float>(rng.Uniform() * 8 - 4));
    }
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(workload, inputs));
  for (const target::Target& target : RunnableTargets()) {
    for (const bool scheduled : {false, true}) {
      HONE_ASSERT_OK_AND_ASSIGN(
          const auto actual,
          RunTrace(target, absl::StrCat(row.workload, scheduled ? row.trace : "trace 1\n"),
                   inputs));
      for (size_t t = 0; t < expected.size(); ++t) {
        for (size_t e = 0; e < expected[t].size(); ++e) {
          const double want = expected[t][e];
          ASSERT_NEAR(actual[t][e], want, 1e-6 * std::max(1.0, std::abs(want)))
              << "output " << t << "[" << e << "] on " << target.cpu;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, RowWorkloadTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

// Returns the CPU time of this thread, which other processes do not affect.
double CpuMilliseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// Detects slow code generation with a generous limit; prints the times.
TEST(RowWorkloadTest, CompilesQuickly) {
  for (const Row& row : kRows) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                              ReplayText(absl::StrCat(row.workload, row.trace)));
    std::vector<double> times;
    for (int i = 0; i < 15; ++i) {
      const double begin = CpuMilliseconds();
      HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, Preset("x86-avx512")));
      ASSERT_THAT(Compile(lowered, Preset("x86-avx512")), IsOk());
      times.push_back(CpuMilliseconds() - begin);
    }
    std::sort(times.begin(), times.end());
    std::cout << row.name << ": " << times[times.size() / 2] << " ms in the median, least "
              << times[0] << "\n";
    EXPECT_LT(times[0], 500);
  }
}

}  // namespace
}  // namespace hone::codegen
