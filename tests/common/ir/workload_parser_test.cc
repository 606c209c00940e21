#include "common/ir/workload_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/ir/workload.h"
#include "common/operator/operator.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void ExpectRoundTrip(const Workload& workload) {
  const std::string text = workload.ToText();
  const auto read = ParseWorkload(text);
  ASSERT_THAT(read, IsOk()) << text;
  EXPECT_EQ(read->ToText(), text);
  EXPECT_EQ(read->StructuralDigest(), workload.StructuralDigest()) << text;
}

TEST(WorkloadTextTest, OperatorsRoundTrip) {
  for (const char* line :
       {"matmul m=7 n=9 k=3", "matmul m=7 n=9 k=3 dtype=i8",
        "batch_matmul b=2 m=7 n=9 k=3 dtype=f16", "conv2d n=1 h=14 w=14 ci=8 co=16 k=3 p=1",
        "conv2d n=2 h=9 w=7 ci=3 co=5 k=3 s=2", "conv2d n=1 h=7 w=7 ci=4 co=4 k=1",
        "dense_relu m=4 n=5 k=6 dtype=bf16", "dense_relu m=4 n=5 k=6 dtype=i32"}) {
    std::vector<std::string> words = absl::StrSplit(line, ' ');
    const std::string name = words[0];
    words.erase(words.begin());
    HONE_ASSERT_OK_AND_ASSIGN(const auto workload, op::BuildWorkload(name, words));
    ExpectRoundTrip(workload);
  }
}

TEST(WorkloadTextTest, TrickyTextsRoundTrip) {
  for (const char* body : {
           // Precedence and associativity.
           "input A: f32[4]\noutput B[i: 4] = A[i] - (A[i] - A[i]) - A[i] / (A[i] / A[i]) * -A[i]",
           "input A: f32[4]\noutput B[i: 4] = (A[i] + 1.0) * 2.0 - 3.0 * (4.0 + A[i])",
           "input A: f32[4]\noutput B[i: 4] = -(A[i] + 1.0) - -A[i]",
           "input A: f32[4]\noutput B[i: 4] = select(A[i] < 1.0 and (A[i] <= 2.0 or A[i] == 3.0), "
           "A[i], -1.5)",
           "input A: f32[4]\noutput B[i: 4] = select(not(A[i] < 1.0), 1e30, 1.5e-07)",
           "input A: i32[4]\noutput B[i: 4] = (A[i] << 2) * 3 + (A[i] >> (A[i] << 1))",
           "input A: u8[4]\noutput B[i: 4] = A[i] << 1 + A[i] >> 2 < A[i] and 1 == A[i] >> 3",
           "input A: f32[4]\noutput B[i: 4] = pow(round(A[i]), 2.0) + floor(-ceil(trunc(A[i])))",
           // Numbers.
           "input A: f32[4]\noutput B[i: 4] = max(A[i], -inf) + min(A[i], inf) + 0.1 + 16777216.0",
           "input A: f64[4]\noutput B[i: 4] = A[i] * 0.1 + 123456789.125 + exp(f64(0.1))",
           "input A: i32[4]\noutput B[i: 4] = A[i] * 2147483647 - 16777217",
           "input A: bf16[4]\noutput B[i: 4] = A[i] + 0.1",
           "input A: i64[4]\noutput B[i: 4] = A[i] + index(i * 3 / 2)",
           "output B[i: 4] = f32(index(i)) + 0.5",
           "output B[i: 4] = 7.0",
           "output B[i: 4] = i8(-7)",
           // Indices.
           "input A: f32[24]\noutput B[i: 4, j: 6] = A[6*i + j]",
           "input A: f32[4, 6]\noutput B[f: 24] = A[f / 6, f % 6]",
           "input A: f32[99]\noutput B[i: 9, j: 4] = A[(3*i + j) / 2 % 5 + i - 2*(j / 3) + 2]",
           "input A: f32[4]\noutput B[i: 4] = A[3 - i]",
           // Keywords of the language as names.
           "input output: f32[4]\noutput input[where: 4] = output[where]",
           "input max: f32[4]\nsum[i: 4] = max[i] + 1.0\noutput inf[i: 4] = max(sum[i], "
           "max[i])\noutput constant[k: 4] = inf[k]",
           "input a.b: f32[4] constant\noutput c_1.x[i.0: 4] = a.b[i.0]",
           "input index: f32[4]\noutput (output, input)[i: 1] = argmax(k: 4) (index[k], index(k))",
           // Reductions.
           "input A: f32[4, 5, 6]\noutput B[i: 4] = sum(j: 5, k: 6 where 0 <= j + k - 2 < 7, 0 <= "
           "k < 5) A[i, j, k]",
           "input A: f32[4, 5]\n(M, S)[i: 4] = online_softmax(k: 5) (A[i, k], 1.0)\noutput B[i: 4, "
           "k: 5] = exp(A[i, k] - M[i]) / S[i]",
           "input A: i8[4, 5]\ninput B: i8[5]\noutput C[i: 4] = sum(k: 5) i32(A[i, k]) * i32(B[k])",
           "input A: f32[4]\noutput B[i: 4] = max(r: 1) max(A[i], 0.0)",
       }) {
    const auto workload = ParseWorkload(absl::StrCat("workload w\n", body, "\n"));
    ASSERT_THAT(workload, IsOk()) << body;
    ExpectRoundTrip(*workload);
  }
}

TEST(WorkloadTextTest, IgnoresLayout) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload, ParseWorkload("\n# a comment\n  \nworkload w   # name\r\n\r\n"
                                         "input A: f32[4,\n   5]\r\n"
                                         "output B[i: 4] =\n\tsum(k: 5)   # continued\n  A[i, k]"));
  EXPECT_EQ(workload.ToText(),
            "workload w\ninput A: f32[4, 5]\noutput B[i: 4] = sum(k: 5) A[i, k]\n");
}

TEST(WorkloadTextTest, ConstantsTakeTheTypeOfTheOtherOperand) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ParseWorkload("workload w\ninput A: i32[4]\noutput B[i: 4] = A[i] + 16777217\n"));
  EXPECT_THAT(workload.ToText(), HasSubstr("A[i] + 16777217"));  // more digits than f32 holds
}

// A wrong text, which follows "workload w\n", and the beginning of its error.
struct BadText {
  const char* text;
  const char* error;
};

TEST(WorkloadTextTest, ErrorsNameTheLocation) {
  const BadText kCases[] = {
      // Statements and keywords.
      {"", "2:1: workload w has no stage"},
      {"input A: f32[4]\n", "3:1: workload w has no stage"},
      {"input A: f32[4]\nB[i: 4] = A[i]\n", "4:1: workload w has no output"},
      {"input A f32[4]\n", "2:9: expected ':', found 'f32'"},
      {"input A: f31[4]\n", "2:10: unknown dtype 'f31'; known: "},
      {"input A: f32[4\n", "2:15: expected ']', found the end of the line"},
      {"input A: f32[4] const\n", "2:17: expected the end of the line, found 'const'"},
      {"input A: f32[4]\ninput A: f32[4]\n", "3:7: tensor A is declared twice"},
      {"output B[i: 4] = 1.0\ninput A: f32[4]\n", "3:7: inputs come before the stages"},
      {"input A: f32[4]\noutput B[i: 4] = A[i] A[i]\n",
       "3:23: expected the end of the line, found 'A'"},
      {"input A: f32[4]\noutput B[i: 4] =\n",
       "3:17: expected a tensor, a function or a number, found the end of the line"},
      {"input A: f32[4]\noutput B[i: 4, i: 4] = 1.0\n", "3:16: axis i is declared twice"},
      {"input A: f32[4]\n+\n", "3:1: expected 'input', 'output' or a tensor's name, found '+'"},
      {"input A: f32[4]\noutput B[i: 4] = A[i] $ 2\n", "3:23: unexpected character '$'"},
      {"input A: f32[4]\noutput B[i: 4] = i4(A[i])\n", "3:18: only inputs are of type i4; use i8"},
      {"input A: u4[4, 3]\ninput I: i32[2] < 4\noutput B[i: 2, j: 3] = A[at(I[i]), j]\n",
       "4:8: stage B reads rows of 3 elements of A at computed indices; two elements of u4 share a "
       "byte, so rows must have an even number of elements"},
      // Operands.
      {"input A: f32[4]\noutput B[i: 4] = A[i] << 2\n",
       "3:23: '<<' takes an integer type, not f32"},
      {"input A: bool[4]\noutput B[i: 4] = A[i] >> A[i]\n",
       "3:23: '>>' takes an integer type, not bool"},
      {"input A: i32[4]\noutput B[i: 4] = A[i] << i8(1)\n",
       "3:23: operands have dtypes i32 and i8; cast one, as in f32(x)"},
      {"input A: i32[4]\noutput B[i: 4] = round(A[i])\n",
       "3:18: 'round' takes a float type, not i32"},
      {"input A: f32[4]\noutput B[i: 4] = pow(A[i])\n",
       "3:18: pow takes 2 operands, not 1, as in pow(x, y)"},
      // Extents and limits.
      {"input A: f32[0]\n", "2:14: extent 0 is not between 1 and 8589934592"},
      {"input A: f32[-4]\n", "2:14: extent -4 is not between 1 and 8589934592"},
      {"input A: f32[99999999999999999999]\n",
       "2:14: '99999999999999999999' is not a whole number that fits in 64 bits"},
      {"input A: f32[4.5]\n", "2:14: '4.5' is not a whole number"},
      {"input A: f32[8589934593]\n", "2:14: extent 8589934593 is not between"},
      {"input A: f32[]\n", "2:7: tensor A has rank 0; 1 to 8 are supported"},
      {"input A: f32[1, 1, 1, 1, 1, 1, 1, 1, 1]\n",
       "2:7: tensor A has rank 9; 1 to 8 are supported"},
      {"input A: f32[131072, 131072]\n",
       "2:7: tensor A: f32[131072, 131072] has more than 8589934592 elements"},
      {"output B[i: 131072, j: 131072] = 1.0\n",
       "2:8: tensor B: f32[131072, 131072] has more than"},
      {"input A: f32[8]\noutput B[i: 8] = sum(j: 8589934592, k: 8589934592) A[i]\n",
       "3:8: stage B has 5.9"},
      // Names.
      {"output B[i: 4] = A[i]\n", "2:18: unknown tensor 'A'"},
      {"output B[i: 4] = B[i]\n", "2:18: unknown tensor 'B'"},
      {"input A: f32[4]\noutput B[i: 4] = A[j]\n", "3:20: unknown axis 'j'"},
      {"input A: f32[4]\noutput B[i: 4] = A\n",
       "3:18: 'A' is neither a tensor with indices nor a function"},
      {"input A: f32[4]\noutput B[i: 4] = foo(A[i])\n", "3:18: unknown function 'foo'"},
      {"input A: f32[4]\noutput B[i: 4] = max(A[i])\n", "3:18: max takes 2 operands, not 1"},
      {"input A: f32[4]\noutput B[i: 4] = exp(A[i], A[i])\n",
       "3:18: exp takes 1 operand, not 2, as in exp(x)"},
      // Indices.
      {"input A: f32[4]\noutput B[i: 4] = A[i, i]\n", "3:18: A is f32[4], but has 2 indices here"},
      {"input A: f32[4]\noutput B[i: 5] = A[i]\n",
       "3:8: stage B: index 0 of A[i] runs from 0 to 4, but the extent is 4"},
      {"input A: f32[4]\noutput B[i: 4] = A[i - 1]\n",
       "3:8: stage B: index 0 of A[i - 1] runs from -1 to 2"},
      {"input A: f32[4]\noutput B[i: 4] = A[i * i]\n", "3:22: a product of two axes is not affine"},
      {"input A: f32[4]\noutput B[i: 4] = A[i / 0]\n",
       "3:22: the divisor must be a positive number"},
      {"input A: f32[4]\noutput B[i: 4] = A[4 % i]\n",
       "3:22: the divisor must be a positive number"},
      {"input A: f32[4]\noutput B[i: 1] = A[i * 8589934592 * 8589934592]\n",
       "3:35: this index can exceed"},
      {"input A: f32[4]\noutput B[i: 4] = A[9999999999]\n",
       "3:20: index constant 9999999999 is larger than"},
      // Types.
      {"input A: f32[4]\ninput B: f64[4]\noutput C[i: 4] = A[i] + B[i]\n",
       "4:23: operands have dtypes f32 and f64; cast one"},
      {"input A: i8[4]\noutput C[i: 4] = A[i] + 300\n",
       "3:23: the number 300 is not a value of i8"},
      {"input A: i64[4]\noutput C[i: 4] = A[i] + 9223372036854775808\n",
       "3:23: the number 9223372036854775808.0 is not a value of i64"},
      {"input A: i64[4]\noutput C[i: 4] = A[i] + (-9223372036854775809)\n",
       "3:23: the number -9223372036854775808.0 is not a value of i64"},
      {"input A: i64[4]\noutput C[i: 4] = A[i] + 9007199254740993.0\n",
       "3:23: the number 9007199254740992.0 is not a value of i64"},
      {"input A: i8[4]\noutput C[i: 4] = A[i] * 1.5\n",
       "3:23: the number 1.5 is not a value of i8"},
      {"input A: f32[4]\noutput C[i: 4] = A[i] and A[i]\n", "3:23: 'and' takes bool, not f32"},
      {"input A: i32[4]\noutput C[i: 4] = exp(A[i])\n", "3:18: 'exp' takes a float type, not i32"},
      {"input A: bool[4]\noutput C[i: 4] = A[i] + A[i]\n", "3:23: '+' takes numbers, not bool"},
      {"input A: f32[4]\noutput C[i: 4] = select(A[i], 1.0, 2.0)\n",
       "3:18: select's first operand must be a condition of type bool, such as a < b"},
      {"input A: bool[4]\noutput C[i: 1] = sum(k: 4) A[k]\n", "3:28: sum of bool; cast it"},
      // Reductions.
      {"input A: f32[4]\noutput (V, I)[i: 1] = sum(k: 4) (A[k], A[k])\n",
       "3:33: this stage has 2 components, its reducer 1"},
      {"input A: f32[4]\noutput V[i: 1] = argmax(k: 4) A[k]\n",
       "3:31: this stage has 1 components, its reducer 2"},
      {"input A: f32[4]\noutput (V, I)[i: 1] = argmax(k: 4) (A[k], A[k])\n",
       "3:36: the second component of argmax must be i32 or i64"},
      {"input A: bf16[4]\noutput (M, S)[i: 1] = online_softmax(k: 4) (A[k], 1.0)\n",
       "3:44: online_softmax adds up in f32 or f64, not bf16; cast its values, as in f32(x)"},
      {"input A: i32[4]\noutput (V, I)[i: 1] = online_softmax(k: 4) (A[k], A[k])\n",
       "3:44: both components of online_softmax must be of one float dtype"},
      {"input A: f32[4]\noutput V[i: 1] = sum(k: 4 where 1 <= k < 4) A[k]\n",
       "3:33: a guard has the form 0 <= index < extent"},
      {"input A: f32[4]\noutput V[i: 1] = sum(k: 4 where 0) A[k]\n",
       "3:34: expected '<', '<=' or '==', found ')'"},
      {"input A: f32[4]\noutput V[i: 1] = sum(k: 4 where 0 <= k < 0) A[k]\n",
       "3:42: extent 0 is not between"},
  };
  for (const BadText& bad : kCases) {
    const auto workload = ParseWorkload(absl::StrCat("workload w\n", bad.text));
    ASSERT_FALSE(workload.ok()) << bad.text;
    EXPECT_THAT(workload, StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(bad.error)))
        << bad.text;
  }
  EXPECT_THAT(std::string(ParseWorkload("").status().message()),
              StartsWith("1:1: expected 'workload', found the end of the text"));
  EXPECT_THAT(std::string(ParseWorkload("workload 3\n").status().message()),
              StartsWith("1:10: expected the workload's name"));
}

// A guard that compares two indices is read as a guard of the canonical form 0 <= index < extent.
TEST(WorkloadTextTest, ComparisonsAreGuards) {
  const auto with = [](const std::string& guard) {
    return ParseWorkload(absl::StrCat(
        "workload w\ninput A: f32[9]\noutput B[j: 8] = sum(k: 9 where ", guard, ") A[k]\n"));
  };
  const std::pair<const char*, const char*> kCases[] = {
      {"k <= j", "0 <= j - k < 8"},
      {"k < j", "0 <= j - k - 1 < 7"},
      {"j < k", "0 <= k - j - 1 < 8"},
      {"k == j", "0 <= j - k < 1"},
      {"2 <= k", "0 <= k - 2 < 7"},
      {"0 <= k", "0 <= k < 9"},
      {"k < 5", "0 <= 4 - k < 5"},
      {"k / 2 <= j", "0 <= j - k / 2 < 8"},
      {"2*k + 1 <= j + 3, k <= j", "0 <= j - 2*k + 2 < 10, 0 <= j - k < 8"},
      {"k < 0", "0 <= -k - 1 < 1"},  // never holds
      {"0 <= k < 9, k <= j", "0 <= k < 9, 0 <= j - k < 8"},
  };
  for (const auto& [guard, canonical] : kCases) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto compared, with(guard));
    ExpectRoundTrip(compared);
    HONE_ASSERT_OK_AND_ASSIGN(const auto written, with(canonical));
    EXPECT_EQ(compared.StructuralDigest(), written.StructuralDigest()) << guard;
    EXPECT_EQ(compared.ToText(), written.ToText());
  }
  // Only points that satisfy the guard count as work.
  EXPECT_EQ(FlopCount(*with("k <= j")), 36);
  EXPECT_EQ(FlopCount(*with("k < j")), 28);
  EXPECT_EQ(FlopCount(*with("k == j")), 8);
  EXPECT_EQ(FlopCount(*with("k < 0")), 0);
}

TEST(WorkloadTextTest, AComparisonGuardsAnIndex) {
  EXPECT_THAT(ParseWorkload("workload w\ninput A: f32[8]\noutput B[j: 8] = sum(k: 8 where k <= j) "
                            "A[j - k]\n"),
              IsOk());
}

TEST(WorkloadTextTest, ErrorsSuggestACorrection) {
  const BadText kCases[] = {
      {"A[i] > 0.0", "3:25: there is no '>' here; write 0.0 < A[i]"},
      {"select(A[i] >= A[3 - i] * 2.0, 1.0, 0.0)",
       "3:32: there is no '>=' here; write A[3 - i] * 2.0 <= A[i]"},
      {"select(A[i] + 1.0 != 0.0, 1.0, 0.0)",
       "3:38: there is no '!=' here; write not(A[i] + 1.0 == 0.0)"},
      {"select(A[i] < 1.0 and A[i] > 0.0, 1.0, 0.0)",
       "3:47: there is no '>' here; write 0.0 < A[i]"},
      {"select(A[i] = 0.0, 1.0, 0.0)", "3:32: there is no '=' here; write A[i] == 0.0"},
      {"select(A[i] < 1.0 && A[i] < 0.0, 1.0, 0.0)",
       "3:38: unexpected character '&'; write a and b"},
      {"A[i] < 1.0 ? 1.0 : 0.0", "3:31: unexpected character '?'; write select(condition, a, b)"},
      {"(A[i] if A[i] < 0.0 else 0.0)", "3:26: write select(condition, a, b), or (a where 0 <= "},
      {"select(!(A[i] < 1.0), 1.0, 0.0)", "3:27: unexpected character '!'; write not(a)"},
      {"product(k: 4) A[k]",
       "3:20: unknown reducer 'product'; did you mean 'prod'? The reducers are sum, prod, min, "},
      {"mean(k: 4) A[k]", "3:20: unknown reducer 'mean'; write a sum stage, sum(k: n) A[k], then "},
      {"median(k: 4) A[k]",
       "3:20: unknown reducer 'median'; the reducers are sum, prod, min, max, "},
      {"1.0 + sum(k: 4) A[k]",
       "3:26: a reduction must be the whole value of its stage; compute this sum in an "},
      {"sum(A[i])", "3:20: 'sum' reduces over axes; name them, as in sum(k: 8) A[k]"},
      {"maximum(A[i], 0.0)",
       "3:20: unknown function 'maximum'; did you mean 'max'? The functions are not, select, "
       "min, "},
      {"relu(A[i])", "3:20: unknown function 'relu'; write max(x, 0.0)"},
      {"swish(A[i])", "3:20: unknown function 'swish'; the functions are not, select, min, max, "},
      {"where(A[i] < 0.0, 0.0, A[i])",
       "3:20: unknown function 'where'; write select(condition, a, b)"},
      {"mean(A[i])", "3:20: unknown function 'mean'; write a sum stage"},
      {"cumsum(A[i])", "3:20: unknown function 'cumsum'; write sum(k: n where k <= i) A[k]"},
      {"float32(A[i])", "3:20: unknown function 'float32'; write f32(x)"},
      {"A[i // 2]", "3:24: there is no '//' here; write a / b"},
      {"A[i] ** 2", "3:25: there is no '**' here; write pow(a, b)"},
      {"1.0 + A[i] % 2.0", "3:31: '%' takes indices only; write a - floor(a / b) * b, or of "},
      {"not A[i]", "3:20: 'not' is a function; write not("},
      {"A[i] * i", "3:27: 'i' is neither a tensor with indices nor a function; write index(i)"},
      {"A + 1.0", "3:20: 'A' is neither a tensor with indices nor a function; A is f32[4], and "},
      {"sum(k: 4 where k > i) A[k]", "3:37: there is no '>' here; write i < k"},
      {"sum(k: 4 where k - 1 >= 2*i) A[k]", "3:41: there is no '>=' here; write 2*i <= k - 1"},
      {"sum(k: 4 where k = i) A[k]", "3:37: there is no '=' here; write k == i"},
      {"sum(k: 4 where k != i) A[k]", "3:37: a guard cannot exclude a single index"},
      {"sum(k: 4 where 1 <= k < 3) A[k]",
       "3:35: a guard has the form 0 <= index < extent or compares two indices; write two guards: "
       "1 <= k, k < 3"},
      {"sum(k: 4 where 0 <= k < i) A[k]",
       "3:35: a guard has the form 0 <= index < extent or compares two indices; write two guards: "
       "0 <= k, k < i"},
      {"sum(k: 4 where k <= 8589934592*i + 8589934592) A[k]",
       "3:35: the sides of this comparison can differ by more than"},
  };
  for (const BadText& bad : kCases) {
    const auto workload = ParseWorkload(
        absl::StrCat("workload w\ninput A: f32[4]\noutput CDE[i: 4] = ", bad.text, "\n"));
    ASSERT_FALSE(workload.ok()) << bad.text;
    EXPECT_THAT(std::string(workload.status().message()), StartsWith(bad.error)) << bad.text;
  }
}

TEST(WorkloadTextTest, ErrorsSuggestTheNearestKeywordOrTensor) {
  const BadText kCases[] = {
      {"inptu A: f32[4]\noutput B[i: 4] = A[i]\n",
       "2:1: unknown keyword 'inptu'; did you mean 'input'?"},
      {"input A: f32[4]\notput B[i: 4] = A[i]\n",
       "3:1: unknown keyword 'otput'; did you mean 'output'?"},
      {"input data: f32[4]\noutput B[i: 4] = dta[i]\n",
       "3:18: unknown tensor 'dta'; did you mean 'data'?"},
  };
  for (const BadText& bad : kCases) {
    const auto workload = ParseWorkload(absl::StrCat("workload w\n", bad.text));
    ASSERT_FALSE(workload.ok()) << bad.text;
    EXPECT_THAT(std::string(workload.status().message()), StartsWith(bad.error)) << bad.text;
  }
}

// Every text, even a hostile one, gets an answer quickly.
TEST(WorkloadTextTest, RejectsHostileTexts) {
  const std::string head = "workload w\ninput A: f32[4]\noutput B[i: 4] = ";
  const auto error = [](const std::string& text) {
    return std::string(ParseWorkload(text).status().message());
  };
  const auto repeat = [](absl::string_view piece, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) absl::StrAppend(&text, piece);
    return text;
  };
  EXPECT_THAT(error(head + std::string("A[i]\0", 5)),
              StartsWith("3:22: unexpected character '\\x0'"));
  EXPECT_THAT(error(head + "A[i] \xff"), StartsWith("3:23: unexpected character '\\xff'"));
  EXPECT_THAT(error(head + repeat("(", 200000)), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(error(head + repeat("-", 200000)), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(error(head + repeat("exp(", 100000)), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(error(head + "A[" + repeat("(", 200000)), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(error(head + "A[i]" + repeat(" + A[i]", 100)), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(error(head + "A[i]" + repeat(" + A[i]", 100000)),
              HasSubstr("more than 16384 operators"));
  EXPECT_THAT(error(head + "A[i" + repeat(" + i / 3", 100000)),
              HasSubstr("more than 16384 operators"));
  EXPECT_THAT(error("workload w\ninput A: f32[4]\noutput B[i: 4] = sum(k: 4 where 0 <= k < 4" +
                    repeat(", 0 <= k < 4", 50000)),
              HasSubstr("more than 32 guards"));
  std::string many = "workload w\n";
  for (int i = 0; i < 300; ++i) absl::StrAppend(&many, "input A", i, ": f32[1]\n");
  EXPECT_THAT(error(many), StartsWith("258:7: more than 256 tensors"));
  EXPECT_THAT(error(repeat("#", (1 << 20) + 1)),
              AllOf(StartsWith("1:1: "), HasSubstr("at most 1048576")));
  EXPECT_THAT(error(head + repeat("A", 900000)),
              StartsWith("3:18: a name of 900000 bytes; at most 128"));
  EXPECT_THAT(error(head + "A[i]" + repeat(" + A[i]", 30) + " > 0"),
              HasSubstr("there is no '>' here; write 0 < …"));
  EXPECT_THAT(error(head + "A[i] * 1e999"), HasSubstr("'1e999' is larger than any f64"));
}

// Every prefix of a text, and every text with one changed character, is parsed or rejected without
// a crash.
TEST(WorkloadTextTest, DamagedTextsDoNotCrash) {
  const std::string text =
      "workload w\ninput A: f32[4, 5]\ninput B: i8[5] constant\n"
      "(M, S)[i: 4] = online_softmax(k: 5 where 0 <= i + k - 1 < 6) (A[i, k], f32(B[k]) * 1e-3)\n"
      "output C[i: 4] = select(M[i] < 1.0, -S[i], A[i % 3, i / 2])\n";
  ASSERT_THAT(ParseWorkload(text), IsOk());
  for (size_t length = 0; length < text.size(); ++length) {
    const auto workload = ParseWorkload(text.substr(0, length));
    if (workload.ok()) ExpectRoundTrip(*workload);
  }
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', ' ', '\n', '(', ']', '9', 'i', ',', '-', '/', '.'}) {
      std::string damaged = text;
      damaged[at] = c;
      const auto workload = ParseWorkload(damaged);
      if (workload.ok()) ExpectRoundTrip(*workload);
    }
  }
}

}  // namespace
}  // namespace hone::ir
