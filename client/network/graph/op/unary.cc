#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "common/base/status_macros.h"

// Functions of one element without attributes (or with attributes that do not change the result).
namespace hone::graph {
namespace {

using ir::DType;

absl::StatusOr<Types> InferBool(const NodeView& node) {
  return Types{{DType::kBool, node.Shape(0)}};
}

absl::StatusOr<Types> InferNot(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedType(node, 0, DType::kBool));
  return InferBool(node);
}

absl::StatusOr<Types> InferIsNaN(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  return InferBool(node);
}

// Writes the elements of the output as a formula of $0, the element of the input.
absl::Status MapTo(const NodeView& node, StageWriter& writer, absl::string_view formula) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  writer.Output(0, axes, absl::Substitute(formula, writer.In(0, axes)));
  return absl::OkStatus();
}

template <const char* kFormula>
absl::Status Map(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, kFormula);
}

absl::Status DefineSign(const NodeView& node, StageWriter& writer) {
  const DType dtype = node.Type(0).dtype;
  if (dtype == DType::kU8) return MapTo(node, writer, "min($0, 1)");
  const absl::string_view type = ir::DTypeName(dtype);
  return MapTo(node, writer,
               absl::StrCat("select(0 < $0, ", type, "(1), select($0 < 0, ", type, "(-1), $0))"));
}

absl::Status DefineIsInf(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t positive, node.Int("detect_positive", 1));
  HONE_ASSIGN_OR_RETURN(const int64_t negative, node.Int("detect_negative", 1));
  return MapTo(node, writer,
               positive != 0 && negative != 0 ? "$0 == inf or $0 == -inf"
               : positive != 0                ? "$0 == inf"
               : negative != 0                ? "$0 == -inf"
                                              : "$0 == inf and $0 == -inf");
}

constexpr char kAbs[] = "abs($0)";
constexpr char kCeil[] = "ceil($0)";
constexpr char kErf[] = "erf($0)";
constexpr char kExp[] = "exp($0)";
constexpr char kFloor[] = "floor($0)";
constexpr char kIsNaN[] = "not($0 == $0)";
constexpr char kLog[] = "log($0)";
constexpr char kNeg[] = "-$0";
constexpr char kNot[] = "not($0)";
constexpr char kReciprocal[] = "1.0 / $0";
constexpr char kRelu[] = "max($0, 0)";
constexpr char kRound[] = "round($0)";
constexpr char kSqrt[] = "sqrt($0)";

}  // namespace

absl::Span<const OperatorDef> UnaryOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Abs", 1, 1, SameNumberType, Map<kAbs>},
      {"Ceil", 1, 1, SameFloatType, Map<kCeil>},
      {"Erf", 1, 1, SameFloatType, Map<kErf>, "float types"},
      {"Exp", 1, 1, SameFloatType, Map<kExp>},
      {"Floor", 1, 1, SameFloatType, Map<kFloor>},
      {"IsInf", 1, 1, InferIsNaN, DefineIsInf},
      {"IsNaN", 1, 1, InferIsNaN, Map<kIsNaN>},
      {"Log", 1, 1, SameFloatType, Map<kLog>},
      {"Neg", 1, 1, SameNumberType, Map<kNeg>},
      {"Not", 1, 1, InferNot, Map<kNot>},
      {"Reciprocal", 1, 1, SameFloatType, Map<kReciprocal>},
      {"Relu", 1, 1, SameNumberType, Map<kRelu>},
      {"Round", 1, 1, SameFloatType, Map<kRound>},
      {"Sign", 1, 1, SameNumberType, DefineSign},
      {"Sqrt", 1, 1, SameFloatType, Map<kSqrt>},
  };
  return kOperators;
}

}  // namespace hone::graph
