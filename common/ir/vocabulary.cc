#include "common/ir/vocabulary.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"

namespace hone::ir {
namespace {

using Takes = Function::Takes;

constexpr Function kFunctions[] = {
    {Op::kAdd, "a + b", Takes::kNumbers, "sum"},
    {Op::kSub, "a - b", Takes::kNumbers, "difference"},
    {Op::kMul, "a * b", Takes::kNumbers, "product"},
    {Op::kDiv, "a / b", Takes::kNumbers,
     "quotient; of integers: rounded toward 0, and 0 if b is 0"},
    {Op::kNeg, "-a", Takes::kNumbers, "negation"},
    {Op::kShiftLeft, "a << n", Takes::kIntegers,
     "a times 2 to the power of n, wrapped; 0 if n is negative or at least the width of the type"},
    {Op::kShiftRight, "a >> n", Takes::kIntegers,
     "a divided by 2 to the power of n, rounded down; if n is negative or at least the width of "
     "the type: -1 for a < 0, else 0"},
    {Op::kLess, "a < b", Takes::kNumbers, "true if a is less than b"},
    {Op::kLessEqual, "a <= b", Takes::kNumbers, "true if a is at most b"},
    {Op::kEqual, "a == b", Takes::kAny, "true if both are equal"},
    {Op::kAnd, "a and b", Takes::kBools, "true if both are true"},
    {Op::kOr, "a or b", Takes::kBools, "true if at least one is true"},
    {Op::kNot, "not(a)", Takes::kBools, "true if a is false"},
    {Op::kSelect, "select(condition, a, b)", Takes::kAny, "a if the condition is true, else b"},
    {Op::kMin, "min(a, b)", Takes::kNumbers, "b if b < a, else a"},
    {Op::kMax, "max(a, b)", Takes::kNumbers, "b if a < b, else a"},
    {Op::kAbs, "abs(x)", Takes::kNumbers, "absolute value"},
    {Op::kRound, "round(x)", Takes::kFloats, "nearest whole number; ties are rounded to even"},
    {Op::kFloor, "floor(x)", Takes::kFloats, "largest whole number that is at most x"},
    {Op::kCeil, "ceil(x)", Takes::kFloats, "smallest whole number that is at least x"},
    {Op::kTrunc, "trunc(x)", Takes::kFloats, "x without its fraction"},
    {Op::kExp, "exp(x)", Takes::kFloats, "e to the power of x"},
    {Op::kLog, "log(x)", Takes::kFloats, "natural logarithm"},
    {Op::kSqrt, "sqrt(x)", Takes::kFloats, "square root"},
    {Op::kRsqrt, "rsqrt(x)", Takes::kFloats, "1 / sqrt(x)"},
    {Op::kPow, "pow(x, y)", Takes::kFloats,
     "x to the power of y; nan if x is negative and y is not a whole number, and 1 if y is 0"},
    {Op::kTanh, "tanh(x)", Takes::kFloats, "hyperbolic tangent"},
    {Op::kErf, "erf(x)", Takes::kFloats, "error function"},
    {Op::kNormalCdf, "normal_cdf(x)", Takes::kFloats,
     "distribution function of the standard normal distribution, (1 + erf(x / sqrt(2))) / 2"},
    {Op::kSigmoid, "sigmoid(x)", Takes::kFloats, "1 / (1 + exp(-x))"},
    {Op::kIndex, "index(i)", Takes::kIndex, "value of the index, as an i64"},
    {Op::kCast, "f32(x)", Takes::kAny, "x converted to f32; every dtype has such a function"},
};

constexpr ReducerInfo kReducers[] = {
    {Reducer::kSum, "sum(k: n) x", "sum; 0 if there are no points"},
    {Reducer::kProd, "prod(k: n) x", "product; 1 if there are no points"},
    {Reducer::kMin, "min(k: n) x",
     "smallest value, ignoring NaN; inf or the largest integer if there are no points"},
    {Reducer::kMax, "max(k: n) x",
     "largest value, ignoring NaN; -inf or the smallest integer if there are no points"},
    {Reducer::kArgMax, "argmax(k: n) (x, index(k))",
     "largest value and its index, the lowest one if several are equal; index -1 if there are no "
     "points"},
    {Reducer::kArgMin, "argmin(k: n) (x, index(k))",
     "smallest value and its index, the lowest one if several are equal; index -1 if there are no "
     "points"},
    {Reducer::kOnlineSoftmax, "online_softmax(k: n) (x, 1.0)",
     "maximum m of x, and the sum of exp(x - m), in one pass"},
};

// Functions of other languages, and how to write them here. docs/language.md has the same table.
constexpr std::pair<absl::string_view, absl::string_view> kForeignNames[] = {
    {"where", "select(condition, a, b)"},
    {"relu", "max(x, 0.0)"},
    {"gelu", "x * normal_cdf(x)"},
    {"silu", "x * sigmoid(x)"},
    {"square", "x * x"},
    {"mean", "a sum stage, sum(k: n) A[k], then a stage that divides by its number of elements"},
    {"average", "a sum stage, sum(k: n) A[k], then a stage that divides by its number of elements"},
    {"cumsum", "sum(k: n where k <= i) A[k]"},
    {"float16", "f16(x)"},
    {"float32", "f32(x)"},
    {"float64", "f64(x)"},
    {"int8", "i8(x)"},
    {"int32", "i32(x)"},
    {"int64", "i64(x)"},
};

// "; write max(x, 0.0)"; "" if the name is not in kForeignNames.
std::string ForeignName(absl::string_view name) {
  for (const auto& [foreign, here] : kForeignNames) {
    if (foreign == name) return absl::StrCat("; write ", here);
  }
  return "";
}

}  // namespace

bool Function::IsCalled() const {
  return absl::StartsWith(usage, name()) && absl::StartsWith(usage.substr(name().size()), "(");
}

absl::string_view TakesText(Takes takes) {
  switch (takes) {
    case Takes::kNumbers:
      return "numbers";
    case Takes::kIntegers:
      return "an integer type";
    case Takes::kFloats:
      return "a float type";
    case Takes::kBools:
      return "bool";
    case Takes::kIndex:
      return "an index";
    case Takes::kAny:
      break;
  }
  return "any type";
}

absl::Span<const Function> Functions() { return kFunctions; }

const Function& FunctionOf(Op op) {
  return *absl::c_find_if(kFunctions, [&](const Function& function) { return function.op == op; });
}

const Function* FindFunction(absl::string_view name) {
  const auto* found = absl::c_find_if(kFunctions, [&](const Function& function) {
    return function.name() == name && function.IsCalled();
  });
  return found == std::end(kFunctions) ? nullptr : found;
}

absl::Span<const ReducerInfo> Reducers() { return kReducers; }

std::string KnownFunctions(absl::string_view unknown) {
  if (std::string here = ForeignName(unknown); !here.empty()) return here;
  std::vector<std::string> names;
  for (const Function& function : kFunctions) {
    if (function.IsCalled()) names.emplace_back(function.name());
  }
  return absl::StrCat(DidYouMeanOneOf(unknown, "functions", names),
                      ", and the dtypes, as in f32(x)");
}

std::string KnownReducers(absl::string_view unknown) {
  if (std::string here = ForeignName(unknown); !here.empty()) return here;
  std::vector<std::string> names;
  for (const ReducerInfo& reducer : kReducers) names.emplace_back(reducer.name());
  return DidYouMeanOneOf(unknown, "reducers", names);
}

}  // namespace hone::ir
