#include "common/operator/library.h"

namespace hone::op {

std::vector<OperatorInfo> RowOperators() {
  const std::vector<KeyInfo> plain = {{"m", "rows"},
                                      {"n", "elements of a row; m = 1 for a plain array"}};
  const std::vector<KeyInfo> rows = {{"m", "rows"}, {"n", "elements of a row"}};
  const std::vector<KeyInfo> axis = {
      {"m", "rows"},
      {"n", "columns"},
      {.name = "axis",
       .meaning = "dimension that is reduced: 1 reduces each row, 0 each column",
       .default_value = 1,
       .minimum = 0,
       .maximum = 1}};
  const std::string relu_note = "NaN stays NaN, as in NumPy and ONNX Runtime.";
  return {
      {.name = "add", .meaning = "Y = A + B", .keys = plain, .text = R"(
input A: {dtype}[{m}, {n}]
input B: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = A[i, j] + B[i, j]
)"},
      {.name = "add_relu",
       .meaning = "Y = max(A + B, 0)",
       .note = relu_note,
       .keys = plain,
       .text = R"(
input A: {dtype}[{m}, {n}]
input B: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = max(A[i, j] + B[i, j], 0)
)"},
      {.name = "multiply", .meaning = "Y = A * B", .keys = plain, .text = R"(
input A: {dtype}[{m}, {n}]
input B: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = A[i, j] * B[i, j]
)"},
      {.name = "bias_add", .meaning = "Y[m, n] = X[m, n] + Bias[n]", .keys = plain, .text = R"(
input X: {dtype}[{m}, {n}]
input Bias: {dtype}[{n}] constant
output Y[i: {m}, j: {n}] = X[i, j] + Bias[j]
)"},
      {.name = "relu", .meaning = "Y = max(X, 0)", .note = relu_note, .keys = plain, .text = R"(
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = max(X[i, j], 0)
)"},
      // Not x·(1 + erf(x/√2)) / 2, where the sum cancels for negative x.
      {.name = "gelu",
       .meaning = "Y = X * (1 + erf(X / sqrt(2))) / 2 = X * normal_cdf(X)",
       .note = "The result is accurate for large negative X too: the relative error is a few units "
               "in the last place until normal_cdf(X) is denormal (X < -12.9 in f32, -37.5 in "
               "f64). For -inf the result is NaN, as in PyTorch.",
       .types = Types::kFloats,
       .keys = plain,
       .text = R"(
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = X[i, j] * normal_cdf(X[i, j])
)"},
      {.name = "sigmoid",
       .meaning = "Y = 1 / (1 + exp(-X))",
       .types = Types::kFloats,
       .keys = plain,
       .text = R"(
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = sigmoid(X[i, j])
)"},
      // x·z / (1 + z) for x < 0 and x / (1 + z) for x ≥ 0, where z = e^−|x| is the square of a
      // computed root. It loses digits only where the result is denormal. The order matters: x·√z
      // is a normal number wherever the result is not 0, but z may not be.
      {.name = "silu",
       .meaning = "Y = X / (1 + exp(-X))",
       .note = "The relative error is a few units in the last place, even of denormal results. For "
               "-inf the result is NaN, as in PyTorch.",
       .types = Types::kFloats,
       .keys = plain,
       .definitions = {{"root", "exp(abs(X[i, j]) * -0.5)"}},
       .text = R"(
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] =
  select(X[i, j] < 0, X[i, j] * {root} * {root}, X[i, j]) / ({root} * {root} + 1)
)"},
      {.name = "tanh", .meaning = "Y = tanh(X)", .types = Types::kFloats, .keys = plain, .text = R"(
input X: {dtype}[{m}, {n}]
output Y[i: {m}, j: {n}] = tanh(X[i, j])
)"},
      {.name = "argmax",
       .meaning = "Y[m] = maximum of X[m, n] over each row; axis=0: Y[n], over each column; Index "
                  "is its position, the lowest if several are equal",
       .note = "NaN elements are ignored, as numpy.nanargmax does. Y is -inf and Index is -1 where "
               "all elements of a row are NaN.",
       .keys = axis,
       .definitions = {{"reduced", "{axis*n + (1 - axis)*m}"}},
       .checks = {{"reduced <= 2147483648", "an index below {reduced} does not fit into i32"}},
       .text = R"(
input X: {dtype}[{m}, {n}]
{axis ? output (Y, Index)[i: {m}] = argmax(k: {n}) (X[i, k], i32(index(k)))}
{axis == 0 ? output (Y, Index)[i: {n}] = argmax(k: {m}) (X[k, i], i32(index(k)))}
)"},
      {.name = "reduce_max",
       .meaning = "Y[m] = maximum of X[m, n] over each row; axis=0: Y[n], over each column",
       .note = "NaN elements are ignored, as numpy.fmax.reduce does. Y is -inf where all elements "
               "of a row are NaN.",
       .keys = axis,
       .text = R"(
input X: {dtype}[{m}, {n}]
{axis ? output Y[i: {m}] = max(k: {n}) X[i, k]}
{axis == 0 ? output Y[i: {n}] = max(k: {m}) X[k, i]}
)"},
      {.name = "reduce_mean",
       .meaning = "Y[m] = mean of X[m, n] over each row; axis=0: Y[n], over each column",
       .types = Types::kFloats,
       .keys = axis,
       .text = R"(
input X: {dtype}[{m}, {n}]
{axis ? Sum[i: {m}] = sum(k: {n}) X[i, k]}
{axis ? output Y[i: {m}] = Sum[i] * {1.0/n}}
{axis == 0 ? Sum[i: {n}] = sum(k: {m}) X[k, i]}
{axis == 0 ? output Y[i: {n}] = Sum[i] * {1.0/m}}
)"},
      {.name = "reduce_sum",
       .meaning = "Y[m] = sum of X[m, n] over each row; axis=0: Y[n], over each column",
       .keys = axis,
       .text = R"(
input X: {dtype}[{m}, {n}]
{axis ? output Y[i: {m}] = sum(k: {n}) X[i, k]}
{axis == 0 ? output Y[i: {n}] = sum(k: {m}) X[k, i]}
)"},
      // The exponentials are a separate stage, so that a schedule can store or recompute them.
      {.name = "softmax",
       .meaning = "Y[m, n] = exp(X[m, n] - max of the row) / sum of these over the row",
       .types = Types::kFloats,
       .keys = rows,
       .text = R"(
input X: {dtype}[{m}, {n}]
Max[i: {m}] = max(k: {n}) X[i, k]
Exp[i: {m}, j: {n}] = exp(X[i, j] - Max[i])
Sum[i: {m}] = sum(k: {n}) Exp[i, k]
output Y[i: {m}, j: {n}] = Exp[i, j] / Sum[i]
)"},
      {.name = "norm",
       .meaning = "Y[b] = sqrt(sum of X[b, m, n]^2): the Frobenius norm of each matrix",
       .types = Types::kFloats,
       .keys = {{"b", "batch"}, {"m", "rows"}, {"n", "columns"}},
       .text = R"(
input X: {dtype}[{b}, {m}, {n}]
Squares[b: {b}] = sum(i: {m}, j: {n}) X[b, i, j] * X[b, i, j]
output Y[b: {b}] = sqrt(Squares[b])
)"},
      // Two passes over a row, because E[x²] − E[x]² would cancel. Everything is computed relative
      // to the row's first element: differences to it are exact for a large common offset. The
      // error is therefore a few units in the last place of the largest result of the row, whatever
      // the offset.
      {.name = "layer_norm",
       .meaning = "Y[m, n] = (X[m, n] - mean) * rsqrt(variance + 1e-5) * Gamma[n] + Beta[n]; mean "
                  "and variance are the row's",
       .note = "The error of a result is a few units in the last place of the largest result of "
               "its row (before Gamma and Beta), also where the elements share a large offset.",
       .types = Types::kFloats,
       .keys = rows,
       .text = R"(
input X: {dtype}[{m}, {n}]
input Gamma: {dtype}[{n}] constant
input Beta: {dtype}[{n}] constant
Sum[i: {m}] = sum(k: {n}) X[i, k] - X[i, 0]
Squares[i: {m}] = sum(k: {n})
  (X[i, k] - X[i, 0] - Sum[i] * {1.0/n}) * (X[i, k] - X[i, 0] - Sum[i] * {1.0/n})
output Y[i: {m}, j: {n}] =
  (X[i, j] - X[i, 0] - Sum[i] * {1.0/n}) * rsqrt(Squares[i] * {1.0/n} + 1e-5) * Gamma[j] + Beta[j]
)"},
      {.name = "rms_norm",
       .meaning = "Y[m, n] = X[m, n] * rsqrt(mean of the row's squares + 1e-5) * Gamma[n]",
       .types = Types::kFloats,
       .keys = rows,
       .text = R"(
input X: {dtype}[{m}, {n}]
input Gamma: {dtype}[{n}] constant
Squares[i: {m}] = sum(k: {n}) X[i, k] * X[i, k]
output Y[i: {m}, j: {n}] = X[i, j] * rsqrt(Squares[i] * {1.0/n} + 1e-5) * Gamma[j]
)"},
      {.name = "transpose",
       .meaning = "Y[n, m] = X[m, n]",
       .keys = {{"m", "rows of X"}, {"n", "columns of X"}},
       .text = R"(
input X: {dtype}[{m}, {n}]
output Y[j: {n}, i: {m}] = X[i, j]
)"},
      {.name = "batch_transpose",
       .meaning = "Y[b, n, m] = X[b, m, n]; from NHWC to NCHW with m = h*w, n = c",
       .keys = {{"b", "batch"}, {"m", "rows of X"}, {"n", "columns of X"}},
       .text = R"(
input X: {dtype}[{b}, {m}, {n}]
output Y[b: {b}, j: {n}, i: {m}] = X[b, i, j]
)"},
  };
}

}  // namespace hone::op
