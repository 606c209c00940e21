#include "tests/common/schedule/random_workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/ir/workload_parser.h"

namespace hone::schedule {
namespace {

// Patterns of workloads. Letters in braces are extents; {m+n} and {m*n} are computed.
constexpr absl::string_view kPatterns[] = {
    // Contractions.
    R"(input A: f32[{m}, {k}]
input B: f32[{k}, {n}]
output C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j])",
    R"(input A: f32[{b}, {m}, {k}]
input B: f32[{b}, {k}, {n}]
output C[b: {b}, i: {m}, j: {n}] = sum(k: {k}) A[b, i, k] * B[b, k, j])",
    R"(input A: f32[{m}, {k}]
input W: f32[{k}, {n}] constant
C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * W[k, j]
output D[i: {m}, j: {n}] = max(C[i, j], 0.0))",
    R"(input A: f32[{m}, {k}]
input W: f32[{k}, {n}] constant
input bias: f32[{n}] constant
C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * W[k, j]
D[i: {m}, j: {n}] = C[i, j] + bias[j]
output E[i: {m}, j: {n}] = max(D[i, j], 0.0) + A[i, 0])",
    R"(input A: f32[{m}, {k}]
input B: f32[{k}, {n}]
input W: f32[{n}, {b}] constant
C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j]
output D[i: {m}, j: {b}] = sum(k: {n}) C[i, k] * W[k, j])",
    // Convolutions.
    R"(input X: f32[{b}, {s}, {s}, {c}]
input W: f32[3, 3, {c}, {n}] constant
output Y[n: {b}, h: {s}, w: {s}, co: {n}] = sum(r: 3, s: 3, ci: {c} where 0 <= h + r - 1 < {s}, 0 <= w + s - 1 < {s})
  X[n, h + r - 1, w + s - 1, ci] * W[r, s, ci, co])",
    R"(input X: f32[{2*s}, {2*s+1}, {c}]
input W: f32[2, 3, {c}, {n}] constant
Y[h: {s}, w: {s}, co: {n}] = sum(r: 2, s: 3, ci: {c}) X[2*h + r, 2*w + s, ci] * W[r, s, ci, co]
output Z[h: {s}, w: {s}, co: {n}] = max(Y[h, w, co], 0.0))",
    R"(input X: f32[{m}, {n}]
input W: f32[3, 3] constant
P[i: {m}, j: {n}] = X[i, j] * 2.0
Y[h: {m}, w: {n}] = sum(r: 3, s: 3 where 0 <= h + r - 1 < {m}, 0 <= w + s - 1 < {n}) P[h + r - 1, w + s - 1] * W[r, s]
output Z[h: {m}, w: {n}] = Y[h, w] - P[h, w])",
    // Windows over computed tensors.
    R"(input X: f32[{n+3}, {m}]
B[i: {n+3}, j: {m}] = X[i, j] + 1.0
C[i: {n}, j: {m}] = B[i, j] + B[i + 1, j] * 2.0 + B[i + 3, j]
output D[j: {m}, i: {n}] = C[i, j])",
    R"(input X: f32[{2*n+1}, {m}]
S[i: {2*n+1}] = sum(j: {m}) X[i, j]
output P[i: {n}] = max(r: 3) S[2*i + r])",
    // Row reductions.
    R"(input X: f32[{m}, {n}]
M[i: {m}] = max(k: {n}) X[i, k]
E[i: {m}, k: {n}] = X[i, k] - M[i]
S[i: {m}] = sum(k: {n}) E[i, k]
output Y[i: {m}, k: {n}] = E[i, k] * 2.0 + S[i])",
    R"(input X: i32[{m}, {n}]
(V, I)[i: {m}] = argmax(k: {n}) (X[i, k], index(k))
output Y[i: {m}] = V[i] * 10 + i32(I[i]))",
    R"(input X: f32[{m}, {n}, {k}]
output Y[i: {m}] = min(j: {n}, k: {k}) X[i, j, k])",
    R"(input X: f32[{m}, {n}]
R[j: {n}] = sum(i: {m}) X[i, j]
output T[u: 1] = sum(j: {n}) R[j])",
    // Transposes, reshapes, element-wise chains.
    R"(input A: f32[{m}, {n}]
B[j: {n}, i: {m}] = A[i, j] * 3.0
C[j: {n}, i: {m}] = B[j, i] + A[i, j]
output D[i: {m}, j: {n}] = max(C[j, i], B[j, i]))",
    R"(input A: f32[{m}, {n}]
B[f: {m*n}] = A[f / {n}, f % {n}] + 1.0
output C[j: {n}, i: {m}] = B[{n}*i + j] * 2.0)",
    R"(input A: i8[{m}, {k}]
input B: i4[{k}, {n}] constant
C[i: {m}, j: {n}] = sum(k: {k}) i32(A[i, k]) * i32(B[k, j])
output D[i: {m}, j: {n}] = select(C[i, j] < 0, 0 - C[i, j], C[i, j]))",
    R"(input A: f16[{m}, {k}]
input B: f16[{n}, {k}]
S[i: {m}, j: {n}] = sum(k: {k}) f32(A[i, k]) * f32(B[j, k])
output D[i: {m}, j: {n}] = f16(S[i, j]) + A[i, 0])",
    // Guarded values: padding, concatenation, a shifted sum.
    R"(input X: f32[{b}, {m}, {n}]
P[a: {b}, h: {m+2}, w: {n+3}] = (X[a, h - 1, w - 1] where 0 <= h - 1 < {m}, 0 <= w - 1 < {n} else -3.0)
Q[a: {b}, h: {m+2}, w: {n+3}] = P[a, h, w] * 2.0
output Y[a: {b}, h: {m}, w: {n}] = sum(r: 3, s: 3) Q[a, h + r, w + s])",
    R"(input A: f32[{m}, {k}]
input B: f32[{n}, {k}]
C[i: {m+n}, j: {k}] = (A[i, j] where i < {m} else B[i - {m}, j] + 1.0)
output D[j: {k}, i: {m+n}] = max(C[i, j], 0.0) - C[i, 0])",
    R"(input A: i32[{m}, {n}]
B[i: {m}, j: {n}] = A[i, j] + 1
C[i: {m}, j: {n}] = (B[i, j - 1] where 1 <= j else i32(7)) + (B[i - 1, j] where 1 <= i else B[i, j])
output D[i: {m}, j: {n}] = (C[i, j + 1] where j + 1 < {n}, j <= i else 0 - C[i, j]))",
    // Guards on other indices than those that they bound.
    R"(input X: f32[{3*m}, {n}]
input Y: f32[{n}, {n}]
S[i: {m+n}, j: {n}] = (X[3*i + 2, j] where i < {m} else Y[i - {m}, {n-1} - j] * 2.0)
output T[i: {3*m+n}, j: {n}] = (S[i / 2, j] where i < {2*m} else S[i - {2*m}, j]))",
    R"(input X: f32[{2*m}, {n}]
H[i: {m}, j: {n}] = X[2*i, j] * 0.5
output S[i: {m}, j: {n}] = sum(k: {3*m} where 2*k + 2*i < {2*m}) H[k + i, j] * X[(i + k) / 2 + i + k, 0])",
    // Gathered elements.
    R"(input T: f32[{m}, {n}]
input I: i32[{b}, {k}] < {m}
E[b: {b}, t: {k}, j: {n}] = T[at(I[b, t]), j] * 2.0
output S[b: {b}, j: {n}] = sum(t: {k}) E[b, t, j])",
    R"(input T: f32[{b}, {m}, {n}] constant
input I: i64[{k}]
J[i: {k}] = I[i] + 1
output Y[j: {n}, b: {b}, i: {k}] = (T[b, at(J[i]), j] where 1 <= j else T[b, 0, at(I[i] * 2)]) + 1.0)",
    // Workloads that instructions can compute.
    R"(input A: u8[{m}, {4*c}]
input B: i8[{c}, {8*b}, 4] constant
C[i: {m}, j: {8*b}] = sum(k: {4*c}) i32(A[i, k]) * i32(B[k / 4, j, k % 4])
output D[i: {m}, j: {8*b}] = max(C[i, j], 0))",
    R"(input A: u8[{m}, {4*c}]
input B: i8[{16*b}, {4*c}] constant
output C[i: {m}, j: {16*b}] = sum(k: {4*c}) i32(A[i, k]) * i32(B[j, k]))",
    R"(input A: i8[{m}, {4*c}]
input B: i8[{c}, {4*b}, 4] constant
output C[i: {m}, j: {4*b}] = sum(k: {4*c}) i32(A[i, k]) * i32(B[k / 4, j, k % 4]))",
    R"(input A: bf16[{m}, {2*c}]
input B: bf16[{c}, {16*b}, 2] constant
output C[i: {m}, j: {16*b}] = sum(k: {2*c}) f32(A[i, k]) * f32(B[k / 2, j, k % 2]))",
    R"(input A: u8[{m}, {c}, {2*b}, 8]
input B: i8[{s}, {c}, 2, 8] constant
C[i: {m}, j: {s}, u: {2*b}, v: 2] = sum(k: {c}, t: 8) i32(A[i, k, u, t]) * i32(B[j, k, v, t])
output D[i: {m}, u: {2*b}, j: {2*s}] = C[i, j / 2, u, j % 2] + 1)",
    // Quantization, powers and shifts.
    R"(input A: f32[{m}, {k}]
input B: f32[{k}, {n}]
C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j]
Q[i: {m}, j: {n}] = u8(min(max(round(C[i, j] * 0.125) + 16.0, 0.0), 255.0))
output D[i: {m}, j: {n}] = (f32(Q[i, j]) - floor(A[i, 0] * 0.5)) * pow(B[0, j], 2.0))",
    R"(input A: f16[{m}, {n}]
input B: bf16[{n}]
C[i: {m}, j: {n}] = ceil(A[i, j] * 0.25) - trunc(f16(B[j]) * 0.5)
output D[j: {n}, i: {m}] = f32(C[i, j]) + f32(pow(B[j], 3.0)))",
    R"(input A: f64[{m}, {n}]
R[i: {m}] = sum(j: {n}) round(A[i, j] * 0.5)
output T[i: {m}, j: {n}] = floor(R[i] * 0.25) + trunc(A[i, j] * 0.75))",
    R"(input A: i8[{m}, {k}]
input B: u4[{k}, {n}]
input N: i32[{n}]
C[i: {m}, j: {n}] = sum(k: {k}) i32(A[i, k]) * i32(B[k, j])
output D[i: {m}, j: {n}] = i8((C[i, j] << N[j]) + 2 >> 2) + (A[i, 0] << 5 >> A[i, 0]))",
    R"(input A: u8[{m}, {n}]
input N: i64[{n}]
C[i: {m}, j: {n}] = A[i, j] << (A[i, 0] >> 1)
output D[i: {m}] = sum(j: {n}) i64(C[i, j]) << N[j] >> 1)",
    // Tuples whose components are outputs, with ties and with an empty domain.
    R"(input X: f32[{m}, {n}]
output (V, I)[i: {m}] = argmin(k: {n} where 0 <= k - i < {n}) (floor(X[i, k] * 0.5), i32(index(k))))",
    R"(input X: f32[{m}, {n}]
B[i: {m}, k: {n}] = X[i, k] + 1.0
(V, I)[k: {n}] = argmax(i: {m}) (B[i, k], index(i))
output D[k: {n}] = V[k] * 2.0 + f32(I[k]))",
};

// For m, n, k, s, b, c.
constexpr int64_t kLimits[RandomWorkload::kExtents] = {1000, 1000, 1000, 9, 3, 3};

}  // namespace

RandomWorkload DrawWorkload(Rng& rng, int64_t max_extent) {
  const auto extent = [&](int64_t limit) {
    return 1 + static_cast<int64_t>(rng.Below(std::min(limit, max_extent)));
  };
  RandomWorkload drawn;
  drawn.pattern = static_cast<int>(rng.Below(std::size(kPatterns)));
  // Images, batches and channels stay small, because their extents multiply.
  for (int i = 0; i < RandomWorkload::kExtents; ++i) drawn.extents[i] = extent(kLimits[i]);
  return drawn;
}

std::string RandomWorkload::Text() const {
  const auto [m, n, k, s, b, c] = extents;
  return absl::StrCat("workload random\n",
                      absl::StrReplaceAll(kPatterns[pattern], {{"{m}", absl::StrCat(m)},
                                                               {"{n}", absl::StrCat(n)},
                                                               {"{k}", absl::StrCat(k)},
                                                               {"{b}", absl::StrCat(b)},
                                                               {"{c}", absl::StrCat(c)},
                                                               {"{n+3}", absl::StrCat(n + 3)},
                                                               {"{m+2}", absl::StrCat(m + 2)},
                                                               {"{m+n}", absl::StrCat(m + n)},
                                                               {"{s}", absl::StrCat(s)},
                                                               {"{2*s}", absl::StrCat(2 * s)},
                                                               {"{2*s+1}", absl::StrCat(2 * s + 1)},
                                                               {"{2*n+1}", absl::StrCat(2 * n + 1)},
                                                               {"{2*b}", absl::StrCat(2 * b)},
                                                               {"{2*c}", absl::StrCat(2 * c)},
                                                               {"{4*c}", absl::StrCat(4 * c)},
                                                               {"{4*b}", absl::StrCat(4 * b)},
                                                               {"{8*b}", absl::StrCat(8 * b)},
                                                               {"{16*b}", absl::StrCat(16 * b)},
                                                               {"{2*m}", absl::StrCat(2 * m)},
                                                               {"{3*m}", absl::StrCat(3 * m)},
                                                               {"{3*m+n}", absl::StrCat(3 * m + n)},
                                                               {"{n-1}", absl::StrCat(n - 1)},
                                                               {"{m*n}", absl::StrCat(m * n)}}),
                      "\n");
}

std::shared_ptr<const ir::Workload> RandomWorkload::Parsed() const {
  return std::make_shared<const ir::Workload>(ir::ParseWorkload(Text()).value());
}

std::vector<ir::Values> SmallIntegerInputs(const ir::Workload& workload, Rng& rng) {
  std::vector<ir::Values> inputs;
  for (ir::BufferId id : workload.Inputs()) {
    ir::Values& values = inputs.emplace_back(ir::ElementsOf(workload.tensors[id].shape));
    const ir::Tensor& tensor = workload.tensors[id];
    const bool is_unsigned = ir::LoadedAs(tensor.dtype) == ir::DType::kU8;
    const double least = tensor.bound > 0 || is_unsigned ? 0 : -4;
    const int64_t numbers = tensor.bound > 0 ? tensor.bound : 9;
    for (double& value : values) value = static_cast<double>(rng.Below(numbers)) + least;
  }
  return inputs;
}

}  // namespace hone::schedule
