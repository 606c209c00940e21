#include "common/operator/library.h"

namespace hone::op {

const char kMatrixOperators[] = R"(
key b: batch
let gelu(x) = ({x}) * normal_cdf({x})

operator matmul: C[m, n] = A[m, k] x B[k, n]
key m: rows of A and C
key n: columns of B and C
key k: columns of A, rows of B
input A: {dtype}[{m}, {k}]
input B: {dtype}[{k}, {n}]
output C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j]

operator batch_matmul: C[b, m, n] = A[b, m, k] x B[b, k, n]
keys b
like matmul
input A: {dtype}[{b}, {m}, {k}]
input B: {dtype}[{b}, {k}, {n}]
output C[b: {b}, i: {m}, j: {n}] = sum(k: {k}) A[b, i, k] * B[b, k, j]

# The heads are adjacent in memory. The transposition is in the indices; the schedule decides whether and where to
# copy (packing).
operator transpose_batch_matmul:
  C[b, h, i, j] = sum over d of A[b, i, h, d] * B[b, j, h, d]: the scores of attention
keys b
key s: length of the sequence
key h: heads
key d: elements of a head
input A: {dtype}[{b}, {s}, {h}, {d}]
input B: {dtype}[{b}, {s}, {h}, {d}]
output C[b: {b}, h: {h}, i: {s}, j: {s}] = sum(d: {d}) A[b, i, h, d] * B[b, j, h, d]

operator dense: Y[m, n] = X[m, k] x W[k, n] + Bias[n]
key m: rows
key n: output features
key k: input features
input X: {dtype}[{m}, {k}]
input W: {dtype}[{k}, {n}] constant
input Bias: {dtype}[{n}] constant
C[i: {m}, j: {n}] = sum(k: {k}) X[i, k] * W[k, j]
output Y[i: {m}, j: {n}] = C[i, j] + Bias[j]

operator dense_gelu floats:
  Y[m, n] = gelu(X[m, k] x W[k, n] + Bias[n]); gelu(x) = x * (1 + erf(x / sqrt(2))) / 2
like dense
input X: {dtype}[{m}, {k}]
input W: {dtype}[{k}, {n}] constant
input Bias: {dtype}[{n}] constant
let c = C[i, j] + Bias[j]
C[i: {m}, j: {n}] = sum(k: {k}) X[i, k] * W[k, j]
output Y[i: {m}, j: {n}] = {gelu({c})}

operator dense_relu: D[m, n] = max(A[m, k] x W[k, n], 0)
like dense
input A: {dtype}[{m}, {k}]
input W: {dtype}[{k}, {n}] constant
C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * W[k, j]
output D[i: {m}, j: {n}] = max(C[i, j], 0)

operator mlp floats: Y[m, n] = gelu(X[m, k] x W1[k, h] + Bias1[h]) x W2[h, n] + Bias2[n]
key m: rows
key k: input features
key h: hidden features
key n = k: output features
input X: {dtype}[{m}, {k}]
input W1: {dtype}[{k}, {h}] constant
input Bias1: {dtype}[{h}] constant
input W2: {dtype}[{h}, {n}] constant
input Bias2: {dtype}[{n}] constant
let c = C1[i, j] + Bias1[j]
C1[i: {m}, j: {h}] = sum(k: {k}) X[i, k] * W1[k, j]
Hidden[i: {m}, j: {h}] = {gelu({c})}
C2[i: {m}, j: {n}] = sum(k: {h}) Hidden[i, k] * W2[k, j]
output Y[i: {m}, j: {n}] = C2[i, j] + Bias2[j]

# Unsigned activations with zero point 0 times signed weights, as in the dot-product instructions of CPUs.
operator quantized_matmul fixed: C[m, n] = A[m, k] x B[k, n], u8 x i8 summed in i32
like matmul
input A: u8[{m}, {k}]
input B: i8[{k}, {n}]
output C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j]

operator quantized_dense fixed: quantized_matmul with constant weights B
like matmul
input A: u8[{m}, {k}]
input B: i8[{k}, {n}] constant
output C[i: {m}, j: {n}] = sum(k: {k}) A[i, k] * B[k, j]

# Dividing last takes s*d divisions instead of s*t, and lets a schedule compute the weighted sum and the row's sum in
# one pass.
operator attention floats:
  Y[b, h] = softmax(Q[b, h] x K[b, h]^T / sqrt(d)) x V[b, h], the softmax over t
keys b
key h: heads
key s: queries
key d: elements of a head
key t = s: keys and values
input Q: {dtype}[{b}, {h}, {s}, {d}]
input K: {dtype}[{b}, {h}, {t}, {d}]
input V: {dtype}[{b}, {h}, {t}, {d}]
Scores[b: {b}, h: {h}, i: {s}, j: {t}] = sum(d: {d}) Q[b, h, i, d] * K[b, h, j, d]
Max[b: {b}, h: {h}, i: {s}] = max(j: {t}) Scores[b, h, i, j]
Exp[b: {b}, h: {h}, i: {s}, j: {t}] = exp((Scores[b, h, i, j] - Max[b, h, i]) * {1.0/sqrt(d)})
Sum[b: {b}, h: {h}, i: {s}] = sum(j: {t}) Exp[b, h, i, j]
Values[b: {b}, h: {h}, i: {s}, d: {d}] = sum(j: {t}) Exp[b, h, i, j] * V[b, h, j, d]
output Y[b: {b}, h: {h}, i: {s}, d: {d}] = Values[b, h, i, d] / Sum[b, h, i]

# One step of an LSTM (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000).
operator lstm_cell floats:
  G[b, 4h] = X x Wx + H x Wh + Bias, in it the gates i, f, g, o of h columns each;
  NextC = sigmoid(f) * C + sigmoid(i) * tanh(g); NextH = sigmoid(o) * tanh(NextC)
keys b
key i: input features
key h: hidden features
input X: {dtype}[{b}, {i}]
input H: {dtype}[{b}, {h}]
input C: {dtype}[{b}, {h}]
input Wx: {dtype}[{i}, {4*h}] constant
input Wh: {dtype}[{h}, {4*h}] constant
input Bias: {dtype}[{4*h}] constant
let gate(g) = FromX[b, j + {g*h}] + FromH[b, j + {g*h}] + Bias[j + {g*h}]
FromX[b: {b}, g: {4*h}] = sum(k: {i}) X[b, k] * Wx[k, g]
FromH[b: {b}, g: {4*h}] = sum(k: {h}) H[b, k] * Wh[k, g]
output NextC[b: {b}, j: {h}] = sigmoid({gate(1)}) * C[b, j] + sigmoid({gate(0)}) * tanh({gate(2)})
output NextH[b: {b}, j: {h}] = sigmoid({gate(3)}) * tanh(NextC[b, j])
)";

}  // namespace hone::op
