#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/operator/library.h"

namespace hone::op {
namespace {

// One step of an LSTM (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al.,
// 2000). The gates i, f, g, o are h columns each.
Definitions Gates() {
  Definitions gates;
  for (const char* number : {"0", "1", "2", "3"}) {
    gates[absl::StrCat("gate", number)] = absl::StrReplaceAll(
        "FromX[b, j + {#*h}] + FromH[b, j + {#*h}] + Bias[j + {#*h}]", {{"#", number}});
  }
  return gates;
}

}  // namespace

std::vector<OperatorInfo> MatrixOperators() {
  const KeyInfo b = {"b", "batch"};
  const std::vector<KeyInfo> product = {
      {"m", "rows of A and C"}, {"n", "columns of B and C"}, {"k", "columns of A, rows of B"}};
  const std::vector<KeyInfo> dense = {
      {"m", "rows"}, {"n", "output features"}, {"k", "input features"}};
  return {
      {.name = "matmul", .meaning = "C[m, n] = A[m, k] x B[k, n]", .keys = product, .text = R"(
input A: {dtype}[{m}, {k}]
input B: {dtype}[{k}, {n}]
output C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j]
)"},
      {.name = "batch_matmul",
       .meaning = "C[b, m, n] = A[b, m, k] x B[b, k, n]",
       .keys = {b, product[0], product[1], product[2]},
       .text = R"(
input A: {dtype}[{b}, {m}, {k}]
input B: {dtype}[{b}, {k}, {n}]
output C[b: {b}, i: {m}, j: {n}] = sum(k: {k}) A[b, i, k] * B[b, k, j]
)"},
      // The heads are adjacent in memory. The transposition is in the indices; the schedule decides
      // whether and where to copy (packing).
      {.name = "transpose_batch_matmul",
       .meaning =
           "C[b, h, i, j] = sum over d of A[b, i, h, d] * B[b, j, h, d]: the scores of attention",
       .keys = {b, {"s", "length of the sequence"}, {"h", "heads"}, {"d", "elements of a head"}},
       .text = R"(
input A: {dtype}[{b}, {s}, {h}, {d}]
input B: {dtype}[{b}, {s}, {h}, {d}]
output C[b: {b}, h: {h}, i: {s}, j: {s}] = sum(d: {d}) A[b, i, h, d] * B[b, j, h, d]
)"},
      {.name = "dense",
       .meaning = "Y[m, n] = X[m, k] x W[k, n] + Bias[n]",
       .keys = dense,
       .text = R"(
input X: {dtype}[{m}, {k}]
input W: {dtype}[{k}, {n}] constant
input Bias: {dtype}[{n}] constant
C[i: {m}, j: {n}] = sum(k: {k}) X[i, k] * W[k, j]
output Y[i: {m}, j: {n}] = C[i, j] + Bias[j]
)"},
      {.name = "dense_gelu",
       .meaning =
           "Y[m, n] = gelu(X[m, k] x W[k, n] + Bias[n]); gelu(x) = x * (1 + erf(x / sqrt(2))) / 2",
       .types = Types::kFloats,
       .keys = dense,
       .text = R"(
input X: {dtype}[{m}, {k}]
input W: {dtype}[{k}, {n}] constant
input Bias: {dtype}[{n}] constant
C[i: {m}, j: {n}] = sum(k: {k}) X[i, k] * W[k, j]
output Y[i: {m}, j: {n}] = (C[i, j] + Bias[j]) * normal_cdf(C[i, j] + Bias[j])
)"},
      {.name = "dense_relu",
       .meaning = "D[m, n] = max(A[m, k] x W[k, n], 0)",
       .keys = dense,
       .text = R"(
input A: {dtype}[{m}, {k}]
input W: {dtype}[{k}, {n}] constant
C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * W[k, j]
output D[i: {m}, j: {n}] = max(C[i, j], 0)
)"},
      {.name = "mlp",
       .meaning = "Y[m, n] = gelu(X[m, k] x W1[k, h] + Bias1[h]) x W2[h, n] + Bias2[n]",
       .types = Types::kFloats,
       .keys = {{"m", "rows"},
                {"k", "input features"},
                {"h", "hidden features"},
                {.name = "n", .meaning = "output features", .default_key = "k"}},
       .text = R"(
input X: {dtype}[{m}, {k}]
input W1: {dtype}[{k}, {h}] constant
input Bias1: {dtype}[{h}] constant
input W2: {dtype}[{h}, {n}] constant
input Bias2: {dtype}[{n}] constant
C1[i: {m}, j: {h}] = sum(k: {k}) X[i, k] * W1[k, j]
Hidden[i: {m}, j: {h}] = (C1[i, j] + Bias1[j]) * normal_cdf(C1[i, j] + Bias1[j])
C2[i: {m}, j: {n}] = sum(k: {h}) Hidden[i, k] * W2[k, j]
output Y[i: {m}, j: {n}] = C2[i, j] + Bias2[j]
)"},
      // Unsigned activations with zero point 0 times signed weights, as in the dot-product
      // instructions of CPUs.
      {.name = "quantized_matmul",
       .meaning = "C[m, n] = A[m, k] x B[k, n], u8 x i8 summed in i32",
       .types = Types::kFixed,
       .keys = product,
       .text = R"(
input A: u8[{m}, {k}]
input B: i8[{k}, {n}]
output C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j]
)"},
      {.name = "quantized_dense",
       .meaning = "quantized_matmul with constant weights B",
       .types = Types::kFixed,
       .keys = product,
       .text = R"(
input A: u8[{m}, {k}]
input B: i8[{k}, {n}] constant
output C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j]
)"},
      // Dividing last takes s·d divisions instead of s·t, and lets a schedule compute the weighted
      // sum and the row's sum in one pass.
      {.name = "attention",
       .meaning = "Y[b, h] = softmax(Q[b, h] x K[b, h]^T / sqrt(d)) x V[b, h], the softmax over t",
       .types = Types::kFloats,
       .keys = {b,
                {"h", "heads"},
                {"s", "queries"},
                {"d", "elements of a head"},
                {.name = "t", .meaning = "keys and values", .default_key = "s"}},
       .text = R"(
input Q: {dtype}[{b}, {h}, {s}, {d}]
input K: {dtype}[{b}, {h}, {t}, {d}]
input V: {dtype}[{b}, {h}, {t}, {d}]
Scores[b: {b}, h: {h}, i: {s}, j: {t}] = sum(d: {d}) Q[b, h, i, d] * K[b, h, j, d]
Max[b: {b}, h: {h}, i: {s}] = max(j: {t}) Scores[b, h, i, j]
Exp[b: {b}, h: {h}, i: {s}, j: {t}] = exp((Scores[b, h, i, j] - Max[b, h, i]) * {1.0/sqrt(d)})
Sum[b: {b}, h: {h}, i: {s}] = sum(j: {t}) Exp[b, h, i, j]
Values[b: {b}, h: {h}, i: {s}, d: {d}] = sum(j: {t}) Exp[b, h, i, j] * V[b, h, j, d]
output Y[b: {b}, h: {h}, i: {s}, d: {d}] = Values[b, h, i, d] / Sum[b, h, i]
)"},
      {.name = "lstm_cell",
       .meaning =
           "G[b, 4h] = X x Wx + H x Wh + Bias, in it the gates i, f, g, o of h columns each; "
           "NextC = sigmoid(f) * C + sigmoid(i) * tanh(g); NextH = sigmoid(o) * tanh(NextC)",
       .types = Types::kFloats,
       .keys = {b, {"i", "input features"}, {"h", "hidden features"}},
       .definitions = Gates(),
       .text = R"(
input X: {dtype}[{b}, {i}]
input H: {dtype}[{b}, {h}]
input C: {dtype}[{b}, {h}]
input Wx: {dtype}[{i}, {4*h}] constant
input Wh: {dtype}[{h}, {4*h}] constant
input Bias: {dtype}[{4*h}] constant
FromX[b: {b}, g: {4*h}] = sum(k: {i}) X[b, k] * Wx[k, g]
FromH[b: {b}, g: {4*h}] = sum(k: {h}) H[b, k] * Wh[k, g]
output NextC[b: {b}, j: {h}] = sigmoid({gate1}) * C[b, j] + sigmoid({gate0}) * tanh({gate2})
output NextH[b: {b}, j: {h}] = sigmoid({gate3}) * tanh(NextC[b, j])
)"},
  };
}

}  // namespace hone::op
