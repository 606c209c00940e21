#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;

namespace {

// X[m, k] x W[k, n].
BufferId Product(OpBuilder& builder, std::string name, BufferId x, BufferId w) {
  const Axis i = builder.NewAxis("i", builder.ShapeOf(x)[0]),
             j = builder.NewAxis("j", builder.ShapeOf(w)[1]);
  const Axis k = builder.NewAxis("k", builder.ShapeOf(x)[1]);
  return builder.Sum(std::move(name), {i, j}, {k}, builder.At(x, {i, k}) * builder.At(w, {k, j}));
}

// An element-wise stage over a product: activation(C[i, j] + bias[j]).
template <typename Activation>
BufferId WithBias(OpBuilder& builder, std::string name, BufferId product, BufferId bias,
                  Activation activation) {
  const std::vector<Axis> axes = builder.AxesOf(product, {"i", "j"});
  return builder.Map(std::move(name), axes,
                     activation(builder.At(product, axes) + builder.At(bias, {axes[1]})));
}

Term Identity(Term x) { return x; }

template <Term kActivation(Term)>
absl::StatusOr<ir::Workload> DenseWithBias(absl::string_view name, const Arguments& arguments) {
  OpBuilder builder(std::string(name), arguments);
  const int64_t m = arguments["m"], n = arguments["n"], k = arguments["k"];
  const BufferId x = builder.Input("X", {m, k}), w = builder.Weight("W", {k, n}),
                 bias = builder.Weight("Bias", {n});
  return builder.Build({WithBias(builder, "Y", Product(builder, "C", x, w), bias, kActivation)});
}

absl::StatusOr<ir::Workload> Dense(const Arguments& arguments) {
  return DenseWithBias<Identity>("dense", arguments);
}
absl::StatusOr<ir::Workload> DenseGelu(const Arguments& arguments) {
  return DenseWithBias<Gelu>("dense_gelu", arguments);
}

absl::StatusOr<ir::Workload> DenseRelu(const Arguments& arguments) {
  OpBuilder builder("dense_relu", arguments);
  const int64_t m = arguments["m"], n = arguments["n"], k = arguments["k"];
  const BufferId a = builder.Input("A", {m, k}), w = builder.Weight("W", {k, n});
  const BufferId c = Product(builder, "C", a, w);
  const std::vector<Axis> axes = builder.AxesOf(c, {"i", "j"});
  return builder.Build({builder.Map("D", axes, Max(builder.At(c, axes), 0))});
}

absl::StatusOr<ir::Workload> Mlp(const Arguments& arguments) {
  OpBuilder builder("mlp", arguments);
  const int64_t m = arguments["m"], k = arguments["k"], h = arguments["h"], n = arguments["n"];
  const BufferId x = builder.Input("X", {m, k});
  const BufferId w1 = builder.Weight("W1", {k, h}), bias1 = builder.Weight("Bias1", {h});
  const BufferId w2 = builder.Weight("W2", {h, n}), bias2 = builder.Weight("Bias2", {n});
  const BufferId hidden = WithBias(builder, "Hidden", Product(builder, "C1", x, w1), bias1, Gelu);
  return builder.Build(
      {WithBias(builder, "Y", Product(builder, "C2", hidden, w2), bias2, Identity)});
}

}  // namespace

std::vector<OperatorInfo> DenseOperators() {
  const std::vector<KeyInfo> keys = {
      {"m", "rows"}, {"n", "output features"}, {"k", "input features"}};
  const std::vector<TensorInfo> inputs = {
      {"X", "m k"}, {"W", "k n", /*constant=*/true}, {"Bias", "n", /*constant=*/true}};
  return {
      {.name = "dense",
       .meaning = "Y[m, n] = X[m, k] x W[k, n] + Bias[n]",
       .keys = keys,
       .inputs = inputs,
       .outputs = {{"Y", "m n"}},
       .build = Dense},
      {.name = "dense_gelu",
       .meaning =
           "Y[m, n] = gelu(X[m, k] x W[k, n] + Bias[n]); gelu(x) = x * (1 + erf(x / sqrt(2))) / 2",
       .keys = keys,
       .inputs = inputs,
       .outputs = {{"Y", "m n"}},
       .types = Types::kFloats,
       .build = DenseGelu},
      {.name = "dense_relu",
       .meaning = "D[m, n] = max(A[m, k] x W[k, n], 0)",
       .keys = keys,
       .inputs = {{"A", "m k"}, {"W", "k n", /*constant=*/true}},
       .outputs = {{"D", "m n"}},
       .build = DenseRelu},
      {.name = "mlp",
       .meaning = "Y[m, n] = gelu(X[m, k] x W1[k, h] + Bias1[h]) x W2[h, n] + Bias2[n]",
       .keys = {{"m", "rows"},
                {"k", "input features"},
                {"h", "hidden features"},
                {.name = "n", .meaning = "output features", .default_key = "k"}},
       .inputs = {{"X", "m k"},
                  {"W1", "k h", /*constant=*/true},
                  {"Bias1", "h", /*constant=*/true},
                  {"W2", "h n", /*constant=*/true},
                  {"Bias2", "n", /*constant=*/true}},
       .outputs = {{"Y", "m n"}},
       .types = Types::kFloats,
       .build = Mlp},
  };
}

}  // namespace hone::op
