#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

// An attribute of a node.
struct Parameter {
  absl::string_view name;
  double default_value;
};

// Writes the elements of the output as a formula of $0, the element of the input, and of $1 and $2,
// the values of up to two attributes.
absl::Status MapTo(const NodeView& node, StageWriter& writer, absl::string_view formula,
                   const std::vector<Parameter>& parameters = {}) {
  std::vector<std::string> numbers(2);
  for (size_t i = 0; i < parameters.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const double value,
                          node.Float(parameters[i].name, parameters[i].default_value));
    numbers[i] = Literal(node.Type(0).dtype, value);
  }
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  writer.Output(0, axes, absl::Substitute(formula, writer.In(0, axes), numbers[0], numbers[1]));
  return absl::OkStatus();
}

template <const char* kFormula>
absl::Status Map(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, kFormula);
}

constexpr char kHardSwish[] = "$0 * max(min($0 / 6.0 + 0.5, 1.0), 0.0)";
// x * tanh(log(1 + exp(x))) without overflow. With e = exp(-|x|), tanh(log(1 + exp(x))) is
// (e² + 2e) / (e² + 2e + 2) for negative x, and (1 + 2e) / (1 + 2e + 2e²) otherwise.
constexpr char kMish[] =
    "$0 * select($0 < 0, exp(-abs($0)) * (exp(-abs($0)) + 2.0) / (exp(-abs($0)) * (exp(-abs($0)) + "
    "2.0) + 2.0), (1.0 + 2.0 * exp(-abs($0))) / (1.0 + 2.0 * exp(-abs($0)) * (1.0 + "
    "exp(-abs($0)))))";
constexpr char kSigmoid[] = "sigmoid($0)";
constexpr char kSoftsign[] = "$0 / (1.0 + abs($0))";
constexpr char kTanh[] = "tanh($0)";

// log(1 + exp(x)) = max(x, 0) + log(1 + u) with u = exp(-|x|). A small u would lose its digits in
// 1 + u. With q = u / (2 + u), the logarithm is 2·atanh(q); the polynomial minimizes its largest
// relative error, which is 8e-9. f64 needs more digits.
absl::Status DefineSoftplus(const NodeView& node, StageWriter& writer) {
  const DType dtype = node.Type(0).dtype;
  if (dtype == DType::kF64) {
    return MapTo(node, writer, "max($0, 0.0) + log(1.0 + exp(-abs($0)))");
  }
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const std::string x = Convert(dtype, DType::kF32, writer.In(0, axes));
  const std::string u = absl::StrCat("exp(-abs(", x, "))");
  const std::string q =
      Element(writer.Stage("q", axes, node.Shape(0), absl::Substitute("$0 / (2.0 + $0)", u)), axes);
  writer.Output(0, axes,
                Convert(DType::kF32, dtype,
                        absl::Substitute("max($0, 0.0) + 2.0 * ($1 + $1 * ($1 * $1) * "
                                         "(0.3333315849304199 + $1 * $1 * (0.20012454688549042 + "
                                         "$1 * $1 * (0.13980303704738617 + $1 * $1 * "
                                         "0.14089155197143555))))",
                                         x, q)));
  return absl::OkStatus();
}

absl::Status DefineCelu(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, "max($0, 0.0) + min($1 * (exp($0 / $1) - 1.0), 0.0)",
               {{"alpha", 1.0}});
}
absl::Status DefineElu(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, "select($0 < 0, $1 * (exp($0) - 1.0), $0)", {{"alpha", 1.0}});
}
absl::Status DefineSelu(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, "$2 * select($0 < 0, $1 * (exp($0) - 1.0), $0)",
               {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}});
}
absl::Status DefineLeakyRelu(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, "select($0 < 0, $1 * $0, $0)", {{"alpha", 0.01}});
}
absl::Status DefineHardSigmoid(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, "max(min($1 * $0 + $2, 1.0), 0.0)", {{"alpha", 0.2}, {"beta", 0.5}});
}
absl::Status DefineShrink(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, "select($0 < -$1, $0 + $2, select($1 < $0, $0 - $2, 0.0))",
               {{"lambd", 0.5}, {"bias", 0.0}});
}
absl::Status DefineSwish(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, "$0 * sigmoid($1 * $0)", {{"alpha", 1.0}});
}
absl::Status DefineThresholdedRelu(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, "select($1 < $0, $0, 0.0)", {{"alpha", 1.0}});
}

// Writes both forms as x times a distribution function, which keeps the digits of small results. In
// the form with tanh, (1 + tanh(z)) / 2 is sigmoid(2z).
absl::Status DefineGelu(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const std::string form, node.String("approximate", "none"));
  if (form == "none") return MapTo(node, writer, "$0 * normal_cdf($0)");
  if (form != "tanh") return node.InvalidError(absl::StrCat("approximate is '", form, "'"));
  const std::string factor = StageWriter::Number(2 * std::sqrt(2 / M_PI));
  return MapTo(node, writer,
               absl::StrCat("$0 * sigmoid(", factor, " * ($0 + 0.044715 * $0 * $0 * $0))"));
}

absl::StatusOr<Types> InferPRelu(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, 1));
  HONE_ASSIGN_OR_RETURN(const auto shape, Broadcast(node, node.Shape(0), node.Shape(1)));
  if (shape != node.Shape(0)) return node.InvalidError("the slope is larger than the input");
  return SameType(node);
}

absl::Status DefinePRelu(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  writer.Output(0, axes,
                absl::Substitute("select($0 < 0, $1 * $0, $0)", writer.In(0, axes),
                                 BroadcastElement(writer, 1, node.Shape(1), axes)));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferClip(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, node.inputs() - 1));
  for (int bound = 1; bound < node.inputs(); ++bound) {
    if (!node.Has(bound) || node.Type(bound).elements() == 1) continue;
    return node.InvalidError(absl::StrCat("a bound is ", node.Type(bound).ToText()));
  }
  return SameNumberType(node);
}

// A bound that is NaN gives NaN, as in NumPy.
absl::Status DefineClip(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::string value = writer.In(0, axes);
  const auto clip = [&](int bound, absl::string_view function) {
    if (!node.Has(bound)) return;
    const std::string limit = FirstAsNumber(node, writer, bound);
    value = absl::StrCat(function, "(", value, ", ", limit, ")");
    const bool is_known =
        node.IsConstant(bound) && !std::isnan(node.Elements(bound)->front().real());
    if (!ir::IsFloat(node.Type(0).dtype) || is_known) return;
    value = absl::Substitute("select($0 == $0, $1, $0)", limit, value);
  };
  clip(1, "max");
  clip(2, "min");
  writer.Output(0, axes, value);
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> ActivationOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Celu", 1, 1, SameFloatType, DefineCelu},
      {"Clip", 1, 3, InferClip, DefineClip},
      {"Elu", 1, 1, SameFloatType, DefineElu},
      {"Gelu", 1, 1, SameFloatType, DefineGelu},
      {"HardSigmoid", 1, 1, SameFloatType, DefineHardSigmoid},
      {"HardSwish", 1, 1, SameFloatType, Map<kHardSwish>},
      {"LeakyRelu", 1, 1, SameFloatType, DefineLeakyRelu},
      {"Mish", 1, 1, SameFloatType, Map<kMish>},
      {"PRelu", 2, 2, InferPRelu, DefinePRelu},
      {"Selu", 1, 1, SameFloatType, DefineSelu},
      {"Shrink", 1, 1, SameFloatType, DefineShrink},
      {"Sigmoid", 1, 1, SameFloatType, Map<kSigmoid>},
      {"Softplus", 1, 1, SameFloatType, DefineSoftplus},
      {"Softsign", 1, 1, SameFloatType, Map<kSoftsign>},
      {"Swish", 1, 1, SameFloatType, DefineSwish},
      {"Tanh", 1, 1, SameFloatType, Map<kTanh>},
      {"ThresholdedRelu", 1, 1, SameFloatType, DefineThresholdedRelu},
  };
  return kOperators;
}

}  // namespace hone::graph
