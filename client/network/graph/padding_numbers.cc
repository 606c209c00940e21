#include "client/network/graph/padding_numbers.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "common/ir/dtype.h"

namespace hone::graph {
namespace {

using Finite = PaddingNumbers::Finite;
using Sign = PaddingNumbers::Sign;

// A larger constant, or a divisor below the inverse of this, may make a number infinite.
constexpr double kMostFinite = 1e20;

// Whether the elements of a constant input do not decide which results are finite. They are bounds,
// or they are weights and tables, which the results of other positions also read.
bool KeepsFinite(const Node& node, size_t input) {
  if (node.op == "Clip") return input > 0;
  return IsOneOf(node, {"Conv", "Gather", "GatherElements", "Gemm", "MatMul"});
}

// The numbers of a node's inputs and result.
class NodeNumbers {
 public:
  NodeNumbers(const Graph& graph, const Node& node,
              absl::FunctionRef<PaddingNumbers(ValueId)> numbers_of)
      : graph_(graph), node_(node), numbers_of_(numbers_of) {}

  Finite OfInputs(bool reads_table) const {
    Finite finite = Finite::kProven;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const ValueId id = node_.inputs[i];
      if (id == kNoValue || !ir::IsFloat(graph_.value(id).type.dtype)) continue;
      if (!graph_.IsConstant(id)) {
        finite = std::min(finite, numbers_of_(id).finite);
      } else if ((!KeepsFinite(node_, i) || reads_table) && !IsModerate(i)) {
        return Finite::kNo;
      }
    }
    return finite;
  }

  // Whether finite inputs make finite results.
  bool IsDefined() const {
    if (node_.op == "Sqrt") return SignOf(0) >= Sign::kNotNegative;
    if (IsOneOf(node_, {"Log", "Reciprocal"})) return SignOf(0) == Sign::kPositive;
    if (node_.op == "Div")
      return graph_.IsConstant(node_.inputs[1]) || SignOf(1) == Sign::kPositive;
    if (node_.op == "Pow") {
      const auto is_whole = [](double exponent) {
        return exponent >= 0 && exponent == std::floor(exponent);
      };
      return SignOf(0) == Sign::kPositive || AreAllElements(graph_, node_.inputs[1], is_whole);
    }
    return !IsOneOf(
        node_, {"Acos", "Acosh", "Asin", "Atanh", "LpNormalization", "Mod", "ReduceLogSum", "Tan"});
  }

  Sign OfResult() const {
    if (IsOneOf(node_,
                {"Abs", "Exp", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Relu", "Sigmoid"})) {
      return Sign::kNotNegative;
    }
    if (node_.op == "Cast") {  // a short float may become 0, and a whole number negative
      const ir::DType to = graph_.value(node_.outputs[0]).type.dtype;
      return to == ir::DType::kF32 || to == ir::DType::kF64 || to == ir::DType::kBF16 ? SignOf(0)
                                                                                      : Sign::kAny;
    }
    if (IsOneOf(node_, {"Expand", "Identity", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum",
                        "Reshape", "Slice", "Sqrt", "Squeeze", "Transpose", "Unsqueeze"})) {
      return SignOf(0);
    }
    const auto is_even = [](double exponent) { return exponent == 2 || exponent == 4; };
    if (node_.op == "Pow" && AreAllElements(graph_, node_.inputs[1], is_even)) {
      return Sign::kNotNegative;
    }
    if (node_.op == "Mul") {
      const bool is_square = node_.inputs[0] == node_.inputs[1];
      return is_square ? Sign::kNotNegative : std::min({SignOf(0), SignOf(1), Sign::kNotNegative});
    }
    if (node_.op == "Add") {
      return SignOf(0) == Sign::kAny || SignOf(1) == Sign::kAny ? Sign::kAny
                                                                : std::max(SignOf(0), SignOf(1));
    }
    if (node_.op == "Clip" && node_.inputs.size() > 1 && node_.inputs[1] != kNoValue) {
      // The largest number might be below the smallest one.
      const bool has_most = node_.inputs.size() > 2 && node_.inputs[2] != kNoValue;
      return has_most ? std::min(SignOf(1), SignOf(2)) : SignOf(1);
    }
    if (node_.op == "Max" && node_.inputs.size() == 2) return std::max(SignOf(0), SignOf(1));
    return Sign::kAny;
  }

 private:
  bool IsModerate(size_t input) const {
    const bool divides = node_.op == "Div" && input == 1;
    return AreAllElements(graph_, node_.inputs[input], [&](double element) {
      const double size = std::abs(element);
      return size <= kMostFinite && (!divides || size >= 1 / kMostFinite);
    });
  }

  Sign SignOf(size_t input) const {
    const ValueId id = node_.inputs[input];
    if (!graph_.IsConstant(id)) return numbers_of_(id).sign;
    const auto is_positive = [](double element) { return element >= 1 / kMostFinite; };
    const auto is_not_negative = [](double element) { return element >= 0; };
    return AreAllElements(graph_, id, is_positive)       ? Sign::kPositive
           : AreAllElements(graph_, id, is_not_negative) ? Sign::kNotNegative
                                                         : Sign::kAny;
  }

  const Graph& graph_;
  const Node& node_;
  const absl::FunctionRef<PaddingNumbers(ValueId)> numbers_of_;
};

}  // namespace

bool IsOneOf(const Node& node, std::initializer_list<absl::string_view> operators) {
  return absl::c_linear_search(operators, node.op);
}

bool AreAllElements(const Graph& graph, ValueId id, absl::FunctionRef<bool(double)> wanted) {
  const Value& value = graph.value(id);
  if (!value.constant.has_value()) return false;
  const char* const elements = value.constant->bytes().data();
  for (int64_t at = 0; at < value.type.elements(); ++at) {
    if (!wanted(ir::ReadElement(value.type.dtype, elements, at).real())) return false;
  }
  return true;
}

PaddingNumbers NumbersAfter(const Graph& graph, const Node& node, bool reads_table,
                            absl::FunctionRef<PaddingNumbers(ValueId)> numbers_of) {
  const NodeNumbers numbers(graph, node, numbers_of);
  PaddingNumbers after{.sign = numbers.OfResult()};
  if (node.outputs[0] != kNoValue && !ir::IsFloat(graph.value(node.outputs[0]).type.dtype)) {
    return after;
  }
  after.finite = numbers.OfInputs(reads_table);
  if (!numbers.IsDefined()) after.finite = std::min(after.finite, Finite::kAssumed);
  return after;
}

}  // namespace hone::graph
