#include "common/operator/library.h"

namespace hone::op {

const char kRowOperators[] = R"(
key b: batch

operator add: Y = A + B
key m: rows
key n: elements of a row; m = 1 for a plain array
input A: {dtype}[{m}, {n}]
input B: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = A[i, j] + B[i, j]

operator add_relu: Y = max(A + B, 0)
note NaN stays NaN, as in NumPy and ONNX Runtime.
like add
input A: {dtype}[{m}, {n}]
input B: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = max(A[i, j] + B[i, j], 0)

operator multiply: Y = A * B
like add
input A: {dtype}[{m}, {n}]
input B: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = A[i, j] * B[i, j]

operator bias_add: Y[m, n] = X[m, n] + Bias[n]
like add
input X: {dtype}[{m}, {n}]
input Bias: {dtype}[{n}] constant
output Y[i: {m}, j: {n}] = X[i, j] + Bias[j]

operator relu: Y = max(X, 0)
note NaN stays NaN, as in NumPy and ONNX Runtime.
like add
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = max(X[i, j], 0)

# Not x * (1 + erf(x / sqrt(2))) / 2, where the sum cancels for negative x.
operator gelu floats: Y = X * (1 + erf(X / sqrt(2))) / 2 = X * normal_cdf(X)
note The result is accurate for large negative X too: the relative error is a few units in the last place until
  normal_cdf(X) is denormal (X < -12.9 in f32, -37.5 in f64). For -inf the result is NaN, as in PyTorch.
like add
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = X[i, j] * normal_cdf(X[i, j])

operator sigmoid floats: Y = 1 / (1 + exp(-X))
like add
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = sigmoid(X[i, j])

# x*z / (1 + z) for x < 0 and x / (1 + z) for x >= 0, where z = exp(-|x|) is the square of a computed root. It loses
# digits only where the result is denormal. The order matters: x * root is a normal number wherever the result is not
# 0, but z may not be.
operator silu floats: Y = X / (1 + exp(-X))
note The relative error is a few units in the last place, even of denormal results. For -inf the result is NaN, as in
  PyTorch.
like add
input X: {dtype}[{m}, {n}]
let x = X[i, j]
let root = exp(abs({x}) * -0.5)
output Y[i: {m}, j: {n}] = select({x} < 0, {x} * {root} * {root}, {x}) / ({root} * {root} + 1)

operator tanh floats: Y = tanh(X)
like add
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = tanh(X[i, j])

operator reduce_sum: Y[m] = sum of X[m, n] over each row; axis=0: Y[n], over each column
key m: rows
key n: columns
key axis = 1 min 0 max 1: dimension that is reduced: 1 reduces each row, 0 each column
input X: {dtype}[{m}, {n}]
{axis ? output Y[i: {m}] = sum(k: {n}) X[i, k]}
{axis == 0 ? output Y[i: {n}] = sum(k: {m}) X[k, i]}

operator reduce_max: Y[m] = maximum of X[m, n] over each row; axis=0: Y[n], over each column
note NaN elements are ignored, as numpy.fmax.reduce does. Y is -inf where all elements of a row are NaN.
like reduce_sum
input X: {dtype}[{m}, {n}]
{axis ? output Y[i: {m}] = max(k: {n}) X[i, k]}
{axis == 0 ? output Y[i: {n}] = max(k: {m}) X[k, i]}

operator reduce_mean floats: Y[m] = mean of X[m, n] over each row; axis=0: Y[n], over each column
like reduce_sum
input X: {dtype}[{m}, {n}]
{axis ? Sum[i: {m}] = sum(k: {n}) X[i, k]}
{axis ? output Y[i: {m}] = Sum[i] * {1.0/n}}
{axis == 0 ? Sum[i: {n}] = sum(k: {m}) X[k, i]}
{axis == 0 ? output Y[i: {n}] = Sum[i] * {1.0/m}}

operator argmax: Y[m] = maximum of X[m, n] over each row; axis=0: Y[n], over each column;
  Index is its position, the lowest if several are equal
note NaN elements are ignored, as numpy.nanargmax does. Y is -inf and Index is -1 where all elements of a row are NaN.
like reduce_sum
let reduced = {axis*n + (1 - axis)*m}
check reduced <= 2147483648: an index below {reduced} does not fit into i32
input X: {dtype}[{m}, {n}]
{axis ? output (Y, Index)[i: {m}] = argmax(k: {n}) (X[i, k], i32(index(k)))}
{axis == 0 ? output (Y, Index)[i: {n}] = argmax(k: {m}) (X[k, i], i32(index(k)))}

# The exponentials are a separate stage, so that a schedule can store or recompute them.
operator softmax floats: Y[m, n] = exp(X[m, n] - max of the row) / sum of these over the row
key m: rows
key n: elements of a row
input X: {dtype}[{m}, {n}]
Max[i: {m}] = max(k: {n}) X[i, k]
Exp[i: {m}, j: {n}] = exp(X[i, j] - Max[i])
Sum[i: {m}] = sum(k: {n}) Exp[i, k]
output Y[i: {m}, j: {n}] = Exp[i, j] / Sum[i]

operator norm floats: Y[b] = sqrt(sum of X[b, m, n]^2): the Frobenius norm of each matrix
keys b
key m: rows
key n: columns
input X: {dtype}[{b}, {m}, {n}]
Squares[b: {b}] = sum(i: {m}, j: {n}) X[b, i, j] * X[b, i, j]
output Y[b: {b}] = sqrt(Squares[b])

# Two passes over a row, because E[x^2] - E[x]^2 would cancel. Everything is computed relative to the row's first
# element: differences to it are exact for a large common offset. The error is therefore a few units in the last place
# of the largest result of the row, whatever the offset.
operator layer_norm floats: Y[m, n] = (X[m, n] - mean) * rsqrt(variance + 1e-5) * Gamma[n] + Beta[n];
  mean and variance are the row's
note The error of a result is a few units in the last place of the largest result of its row (before Gamma and Beta),
  also where the elements share a large offset.
like softmax
input X: {dtype}[{m}, {n}]
input Gamma: {dtype}[{n}] constant
input Beta: {dtype}[{n}] constant
let deviation(j) = (X[i, {j}] - X[i, 0] - Sum[i] * {1.0/n})
Sum[i: {m}] = sum(k: {n}) X[i, k] - X[i, 0]
Squares[i: {m}] = sum(k: {n}) {deviation(k)} * {deviation(k)}
output Y[i: {m}, j: {n}] = {deviation(j)} * rsqrt(Squares[i] * {1.0/n} + 1e-5) * Gamma[j] + Beta[j]

operator rms_norm floats: Y[m, n] = X[m, n] * rsqrt(mean of the row's squares + 1e-5) * Gamma[n]
like softmax
input X: {dtype}[{m}, {n}]
input Gamma: {dtype}[{n}] constant
Squares[i: {m}] = sum(k: {n}) X[i, k] * X[i, k]
output Y[i: {m}, j: {n}] = X[i, j] * rsqrt(Squares[i] * {1.0/n} + 1e-5) * Gamma[j]

operator transpose: Y[n, m] = X[m, n]
key m: rows of X
key n: columns of X
input X: {dtype}[{m}, {n}]
output Y[j: {n}, i: {m}] = X[i, j]

operator batch_transpose: Y[b, n, m] = X[b, m, n]; from NHWC to NCHW with m = h*w, n = c
keys b
like transpose
input X: {dtype}[{b}, {m}, {n}]
output Y[b: {b}, j: {n}, i: {m}] = X[b, i, j]
)";

}  // namespace hone::op
