#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Index;

namespace {

constexpr double kEpsilon = 1e-5;

absl::StatusOr<ir::Workload> Norm(const Arguments& arguments) {
  OpBuilder b("norm", arguments);
  const int64_t batch = arguments["b"], m = arguments["m"], n = arguments["n"];
  const BufferId x = b.Input("X", {batch, m, n});
  const Axis z = b.NewAxis("b", batch), i = b.NewAxis("i", m), j = b.NewAxis("j", n);
  const BufferId sum = b.Sum("Squares", {z}, {i, j}, b.At(x, {z, i, j}) * b.At(x, {z, i, j}));
  const Axis y = b.NewAxis("b", batch);
  return b.Build({b.Map("Y", {y}, Sqrt(b.At(sum, {y})))});
}

// Two passes over a row, because E[x²] − E[x]² would cancel. Everything is computed relative to the
// row's first element: differences to it are exact for a large common offset. The error is
// therefore a few units in the last place of the largest result of the row, whatever the offset.
absl::StatusOr<ir::Workload> LayerNorm(const Arguments& arguments) {
  OpBuilder b("layer_norm", arguments);
  const int64_t m = arguments["m"], n = arguments["n"];
  const double share = 1 / static_cast<double>(n);
  const BufferId x = b.Input("X", {m, n});
  const BufferId gamma = b.Weight("Gamma", {n}), beta = b.Weight("Beta", {n});
  const Axis si = b.NewAxis("i", m), sk = b.NewAxis("k", n);
  const auto relative = [&](const Axis& i, const Axis& j) {
    return b.At(x, {i, j}) - b.At(x, {i, Index(0)});
  };
  const BufferId sum = b.Sum("Sum", {si}, {sk}, relative(si, sk));
  const auto deviation = [&](const Axis& i, const Axis& j) {
    return relative(i, j) - b.At(sum, {i}) * share;
  };
  const Axis vi = b.NewAxis("i", m), vk = b.NewAxis("k", n);
  const BufferId squares = b.Sum("Squares", {vi}, {vk}, deviation(vi, vk) * deviation(vi, vk));
  const Axis i = b.NewAxis("i", m), j = b.NewAxis("j", n);
  const Term scaled = deviation(i, j) * Rsqrt(b.At(squares, {i}) * share + kEpsilon);
  return b.Build({b.Map("Y", {i, j}, scaled * b.At(gamma, {j}) + b.At(beta, {j}))});
}

absl::StatusOr<ir::Workload> RmsNorm(const Arguments& arguments) {
  OpBuilder b("rms_norm", arguments);
  const int64_t m = arguments["m"], n = arguments["n"];
  const BufferId x = b.Input("X", {m, n}), gamma = b.Weight("Gamma", {n});
  const Axis si = b.NewAxis("i", m), sk = b.NewAxis("k", n);
  const BufferId squares = b.Sum("Squares", {si}, {sk}, b.At(x, {si, sk}) * b.At(x, {si, sk}));
  const Axis i = b.NewAxis("i", m), j = b.NewAxis("j", n);
  const Term scaled =
      b.At(x, {i, j}) * Rsqrt(b.At(squares, {i}) * (1 / static_cast<double>(n)) + kEpsilon);
  return b.Build({b.Map("Y", {i, j}, scaled * b.At(gamma, {j}))});
}

}  // namespace

std::vector<OperatorInfo> NormalizationOperators() {
  const std::vector<KeyInfo> rows = {{"m", "rows"}, {"n", "elements of a row"}};
  return {
      {.name = "norm",
       .meaning = "Y[b] = sqrt(sum of X[b, m, n]^2): the Frobenius norm of each matrix",
       .keys = {{"b", "batch"}, {"m", "rows"}, {"n", "columns"}},
       .inputs = {{"X", "b m n"}},
       .outputs = {{"Y", "b"}},
       .types = Types::kFloats,
       .build = Norm},
      {.name = "layer_norm",
       .meaning = "Y[m, n] = (X[m, n] - mean) * rsqrt(variance + 1e-5) * Gamma[n] + Beta[n]; mean "
                  "and variance are the row's",
       .note = "The error of a result is a few units in the last place of the largest result of "
               "its row (before Gamma and Beta), also where the elements share a large offset.",
       .keys = rows,
       .inputs = {{"X", "m n"},
                  {"Gamma", "n", /*constant=*/true},
                  {"Beta", "n", /*constant=*/true}},
       .outputs = {{"Y", "m n"}},
       .types = Types::kFloats,
       .build = LayerNorm},
      {.name = "rms_norm",
       .meaning = "Y[m, n] = X[m, n] * rsqrt(mean of the row's squares + 1e-5) * Gamma[n]",
       .keys = rows,
       .inputs = {{"X", "m n"}, {"Gamma", "n", /*constant=*/true}},
       .outputs = {{"Y", "m n"}},
       .types = Types::kFloats,
       .build = RmsNorm},
  };
}

}  // namespace hone::op
