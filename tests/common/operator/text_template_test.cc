#include "common/operator/text_template.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/operator/library.h"

namespace hone::op {
namespace {

Definitions Of(const std::vector<std::string>& all) {
  Definitions definitions;
  for (const std::string& definition : all) Define(definition, definitions);
  return definitions;
}

TEST(TextTemplateTest, EvaluatesExpressions) {
  const Definitions definitions = Of({"n = 7", "half = {n/2}", "zero = 0"});
  const std::pair<const char*, double> kCases[] = {
      {"7", 7},
      {"n", 7},
      {"half", 3},
      {"1 + 2*n", 15},
      {"(1 + 2)*n - 3 - 4", 14},
      {"n/2*2", 6},
      {"(zero - n)/2", -4},  // rounds down
      {"(zero - n) % 4", 1},
      {"n % 4", 3},
      {"1.0/n", 1.0 / 7},
      {"1.0/(n*n)", 1.0 / 49},
      {"1.0/sqrt(n)", 1 / std::sqrt(7.0)},
      {"n < 7", 0},
      {"n <= 7", 1},
      {"n == 7", 1},
      {"(n < 8)*(1 + zero)", 1},
      {"n*n*8589934592*8589934592 < n*8589934592", 0},  // beyond 64 bits
  };
  for (const auto& [expression, value] : kCases)
    EXPECT_EQ(Evaluate(expression, definitions), value) << expression;
}

TEST(TextTemplateTest, Expands) {
  const Definitions definitions =
      Of({"n = 7", "zero = 0", "T = f32", "at = {n}*i + {zero}", "in = {zero ? {at} < 5}",
          "element(x, i) = {x}[{i}, {n}]", "twice(x) = {element(A, {x})} + {element({T}, {x})}"});
  const std::pair<const char*, const char*> kCases[] = {
      {"", ""},
      {"input A: {T}[{n}, {2*n}]", "input A: f32[7, 14]"},
      {"A[{at}]", "A[7*i + 0]"},
      {"A[i] * {1.0/n} + {1.0/4}", "A[i] * 0.14285714285714285 + 0.25"},
      {"a {n ? b {at}}{zero ? c} d", "a b 7*i + 0 d"},
      {"{twice(j + 1)}", "A[j + 1, 7] + f32[j + 1, 7]"},
      // Items of a list.
      {"sum(k: 2 where {n ? a}, {n ? b}) x", "sum(k: 2 where a, b) x"},
      {"sum(k: 2 where {n ? a}, {zero ? b}) x", "sum(k: 2 where a) x"},
      {"sum(k: 2 where {in}, {n ? b}) x", "sum(k: 2 where b) x"},
      {"sum(k: 2 where {in}, {zero ? b}) x", "sum(k: 2) x"},
      {"sum(k: 2 where a, {in}, {zero ? b}, c) x", "sum(k: 2 where a, c) x"},
  };
  for (const auto& [text, expanded] : kCases)
    EXPECT_EQ(Expand(text, definitions), expanded) << text;
}

TEST(TextTemplateTest, MalformedTemplatesAbort) {
  const Definitions definitions = Of({"n = 7", "f(x) = {x}"});
  EXPECT_DEATH(Evaluate("n +", definitions), "not a number");
  EXPECT_DEATH(Evaluate("m", definitions), "not a number: m");
  EXPECT_DEATH(Evaluate("(n", definitions), "expected '\\)'");
  EXPECT_DEATH(Evaluate("n n", definitions), "unexpected: n");
  EXPECT_DEATH(Expand("{n", definitions), "expected '}'");
  EXPECT_DEATH(Expand("{f(1, 2)}", definitions), "wrong number of arguments");
}

TEST(LibraryReaderTest, ReadsDefinitions) {
  const std::vector<OperatorInfo> operators = ReadOperators(R"(
# A comment.
key n: batch
key p = 0 min 0: padding: on each side
let shared = {n}

operator scale floats: Y[n] =
  X[n] * 2
note Rounds
  once.
keys n p
key q = p min 0 max 3: another
check p < n: padding {p}
input X: {dtype}[{n}, {2*n}]
input W: u8[{n}] constant
{p ? output Y[i: {n}] = X[i, 0]}
{p == 0 ? output Y[i: {q}] = X[i, 1]}

operator index fixed: Y
like scale
input X: i8[3]
output (Y, Index)[i: 3] = argmax(k: 1) (X[i], index(k))
)");
  ASSERT_EQ(operators.size(), 2u);
  const OperatorInfo& scale = operators[0];
  EXPECT_EQ(scale.name, "scale");
  EXPECT_EQ(scale.meaning, "Y[n] = X[n] * 2");
  EXPECT_EQ(scale.note, "Rounds once.");
  EXPECT_EQ(scale.types, Types::kFloats);
  ASSERT_EQ(scale.keys.size(), 3u);
  EXPECT_TRUE(scale.keys[0].Required());
  EXPECT_EQ(scale.keys[1].meaning, "padding: on each side");
  EXPECT_EQ(scale.keys[1].default_value, 0);
  EXPECT_EQ(scale.keys[1].minimum, 0);
  EXPECT_EQ(scale.keys[2].default_key, "p");
  EXPECT_EQ(scale.keys[2].maximum, 3);
  EXPECT_EQ(scale.statements[0], "let shared = {n}");
  ASSERT_EQ(scale.inputs.size(), 2u);
  EXPECT_EQ(scale.inputs[0].layout, "n 2*n");
  EXPECT_EQ(scale.inputs[0].dtype, "");
  EXPECT_TRUE(scale.inputs[1].constant);
  EXPECT_EQ(scale.inputs[1].dtype, "u8");
  ASSERT_EQ(scale.outputs.size(), 1u);
  EXPECT_EQ(scale.outputs[0].layout, "n");
  const OperatorInfo& index = operators[1];
  EXPECT_EQ(index.keys.size(), 3u);
  EXPECT_EQ(index.statements[1], "check p < n: padding {p}");
  EXPECT_EQ(index.inputs.size(), 1u);
  ASSERT_EQ(index.outputs.size(), 2u);
  EXPECT_EQ(index.outputs[1].name, "Index");
  EXPECT_EQ(index.outputs[1].dtype, "i32");
}

}  // namespace
}  // namespace hone::op
