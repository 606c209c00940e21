#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;

namespace {

Term Relu(Term x) { return Max(x, 0); }
Term Add(Term a, Term b) { return a + b; }
Term AddRelu(Term a, Term b) { return Max(a + b, 0); }
Term Multiply(Term a, Term b) { return a * b; }

absl::StatusOr<ir::Workload> Unary(absl::string_view name, const Arguments& arguments,
                                   Term function(Term)) {
  OpBuilder b(std::string(name), arguments);
  const BufferId x = b.Input("X", {arguments["m"], arguments["n"]});
  const std::vector<Axis> axes = b.AxesOf(x, {"i", "j"});
  return b.Build({b.Map("Y", axes, function(b.At(x, axes)))});
}

absl::StatusOr<ir::Workload> Binary(absl::string_view name, const Arguments& arguments,
                                    Term function(Term, Term)) {
  OpBuilder builder(std::string(name), arguments);
  const ir::Shape shape = {arguments["m"], arguments["n"]};
  const BufferId a = builder.Input("A", shape), b = builder.Input("B", shape);
  const std::vector<Axis> axes = builder.AxesOf(a, {"i", "j"});
  return builder.Build(
      {builder.Map("Y", axes, function(builder.At(a, axes), builder.At(b, axes)))});
}

absl::StatusOr<ir::Workload> BiasAdd(const Arguments& arguments) {
  OpBuilder b("bias_add", arguments);
  const BufferId x = b.Input("X", {arguments["m"], arguments["n"]}),
                 bias = b.Weight("Bias", {arguments["n"]});
  const std::vector<Axis> axes = b.AxesOf(x, {"i", "j"});
  return b.Build({b.Map("Y", axes, b.At(x, axes) + b.At(bias, {axes[1]}))});
}

constexpr char kReluNote[] = "NaN stays NaN, as in NumPy and ONNX Runtime.";

using BuildFunction = absl::StatusOr<ir::Workload> (*)(const Arguments&);

const std::vector<KeyInfo>& Keys() {
  static const auto* const keys =
      new std::vector<KeyInfo>{{"m", "rows"}, {"n", "elements of a row; m = 1 for a plain array"}};
  return *keys;
}

OperatorInfo UnaryInfo(std::string name, std::string meaning, Types types, BuildFunction build) {
  return {.name = std::move(name),
          .meaning = std::move(meaning),
          .keys = Keys(),
          .inputs = {{"X", "m n"}},
          .outputs = {{"Y", "m n"}},
          .types = types,
          .build = build};
}

OperatorInfo BinaryInfo(std::string name, std::string meaning, BuildFunction build) {
  return {.name = std::move(name),
          .meaning = std::move(meaning),
          .keys = Keys(),
          .inputs = {{"A", "m n"}, {"B", "m n"}},
          .outputs = {{"Y", "m n"}},
          .build = build};
}

OperatorInfo WithNote(OperatorInfo info, std::string note) {
  info.note = std::move(note);
  return info;
}

}  // namespace

std::vector<OperatorInfo> ElementwiseOperators() {
  OperatorInfo bias_add =
      UnaryInfo("bias_add", "Y[m, n] = X[m, n] + Bias[n]", Types::kNumbers, BiasAdd);
  bias_add.inputs.push_back({"Bias", "n", /*constant=*/true});
  return {
      BinaryInfo("add", "Y = A + B", [](const Arguments& a) { return Binary("add", a, Add); }),
      WithNote(BinaryInfo("add_relu", "Y = max(A + B, 0)",
                          [](const Arguments& a) { return Binary("add_relu", a, AddRelu); }),
               kReluNote),
      BinaryInfo("multiply", "Y = A * B",
                 [](const Arguments& a) { return Binary("multiply", a, Multiply); }),
      std::move(bias_add),
      WithNote(UnaryInfo("relu", "Y = max(X, 0)", Types::kNumbers,
                         [](const Arguments& a) { return Unary("relu", a, Relu); }),
               kReluNote),
      WithNote(UnaryInfo("gelu", "Y = X * (1 + erf(X / sqrt(2))) / 2 = X * normal_cdf(X)",
                         Types::kFloats, [](const Arguments& a) { return Unary("gelu", a, Gelu); }),
               "The result is accurate for large negative X too: the relative error is a few units "
               "in the last place until normal_cdf(X) is denormal (X < -12.9 in f32, -37.5 in "
               "f64). For -inf the result is NaN, as in PyTorch."),
      UnaryInfo("sigmoid", "Y = 1 / (1 + exp(-X))", Types::kFloats,
                [](const Arguments& a) { return Unary("sigmoid", a, Sigmoid); }),
      WithNote(UnaryInfo("silu", "Y = X / (1 + exp(-X))", Types::kFloats,
                         [](const Arguments& a) { return Unary("silu", a, Silu); }),
               "The relative error is a few units in the last place, even of denormal results. For "
               "-inf the result is NaN, as in PyTorch."),
      UnaryInfo("tanh", "Y = tanh(X)", Types::kFloats,
                [](const Arguments& a) { return Unary("tanh", a, Tanh); }),
  };
}

}  // namespace hone::op
