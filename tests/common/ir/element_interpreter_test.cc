#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/reference_workload.h"
#include "common/ir/workload_parser.h"
#include "tests/common/ir/interpret_element.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

Workload ParseElement(const std::string& body) {
  auto workload = ParseWorkload(absl::StrCat("workload w\n", body, "\n"));
  EXPECT_THAT(workload, IsOk());
  return std::move(workload).value();
}

TEST(InterpretElementTest, AgreesWithTheInterpreter) {
  const Workload workload = ParseElement(
      "input A: f64[5, 6]\ninput B: f64[6, 4]\n"
      "C[i: 5, j: 4] = sum(k: 6 where 0 <= k - i < 6) A[i, k] * B[k, j]\n"
      "(V, I)[i: 5] = argmax(j: 4) (C[i, j], index(j))\n"
      "output D[i: 5, j: 4] = max(C[i, j], 0.0) - V[i] * 2.0\n"
      "output E[i: 5] = I[i]\n"
      "output P[i: 5] = prod(k: 6) A[i, k]");
  Rng rng(11);
  std::vector<Values> inputs = {Values(30), Values(24)};
  for (Values& input : inputs) {
    for (double& value : input) value = rng.Uniform() * 4 - 2;
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(workload, inputs));
  const auto read = [&](BufferId tensor, int64_t offset) { return inputs[tensor][offset]; };
  const std::vector<BufferId> ids = workload.Outputs();
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_DOUBLE_EQ(InterpretElement(workload, ids[0], {i, j}, read).value.real(),
                       outputs[0][i * 4 + j]);
    }
    EXPECT_EQ(InterpretElement(workload, ids[1], {i}, read).value, outputs[1][i]);
    EXPECT_DOUBLE_EQ(InterpretElement(workload, ids[2], {i}, read).value.real(), outputs[2][i]);
    double product = 1;
    for (int64_t k = 0; k < 6; ++k) product *= std::abs(inputs[0][i * 6 + k]);
    EXPECT_DOUBLE_EQ(InterpretElement(workload, ids[2], {i}, read).magnitude, product);
  }
}

// The magnitude of a sum does not cancel.
TEST(InterpretElementTest, MagnitudeOfASumOfProducts) {
  const Workload workload =
      ParseElement("input A: f64[3]\noutput S[u: 1] = sum(k: 3) A[k] * A[k] - 2.0");
  const Values a = {1, -1, 2};
  const ElementValue element = InterpretElement(workload, workload.Outputs()[0], {0},
                                                [&](BufferId, int64_t o) { return a[o]; });
  EXPECT_EQ(element.value, 0);
  EXPECT_EQ(element.magnitude, 12);
}

// An element of a layer norm reads each number of its row a few times, not once per other element.
TEST(InterpretElementTest, SumsOfARowAreComputedOnce) {
  const Workload workload = ParseElement(
      "input X: f32[4, 1024]\nS[i: 4] = sum(k: 1024) X[i, k]\n"
      "Q[i: 4] = sum(k: 1024) (X[i, k] - S[i]) * (X[i, k] - S[i])\n"
      "output Y[i: 4, j: 1024] = (X[i, j] - S[i]) * Q[i]");
  int64_t reads = 0;
  const auto read = [&](BufferId, int64_t offset) {
    ++reads;
    return static_cast<double>(offset % 3);
  };
  const ElementValue element = InterpretElement(workload, workload.Outputs()[0], {2, 0}, read);
  EXPECT_NE(element.value, 0);
  EXPECT_LE(reads, 4 * 1024);
}

// A small difference of large numbers has a large relative error, which carries over to a quotient
// or exponential.
TEST(ElementInterpreterTest, ChainsOfStagesTakeLinearTime) {
  std::string text = "input T0: f32[4]\n";
  for (int i = 1; i <= 60; ++i) {
    absl::StrAppend(&text, "T", i, "[i: 4] = T", i - 1, "[i] * 0.5 + T", i - 1, "[3 - i] * 0.25\n");
  }
  absl::StrAppend(&text, "output Y[i: 4] = T60[i]\n");
  const Workload workload = ParseElement(text);
  ElementInterpreter interpreter(workload, [](BufferId, int64_t) { return 1.0; });
  const auto element = interpreter.Interpret(workload.Outputs()[0], {1});
  EXPECT_DOUBLE_EQ(element.value().value.real(), std::pow(0.75, 60));
  EXPECT_LE(interpreter.points(), 200);
}

TEST(ElementInterpreterTest, ElementsShareTheirWorkWithinALimit) {
  const Workload workload = ParseElement(
      "input A: f32[2, 100]\ninput B: f32[100, 50]\ninput C: f32[50, 8]\n"
      "H[i: 2, j: 50] = sum(k: 100) A[i, k] * B[k, j]\n"
      "output Y[i: 2, j: 8] = sum(k: 50) H[i, k] * C[k, j]\n");
  const BufferId output = workload.Outputs()[0];
  ElementInterpreter interpreter(workload, [](BufferId, int64_t) { return 1.0; });
  EXPECT_FALSE(interpreter.Interpret(output, {0, 0}, 4000).has_value());
  EXPECT_EQ(interpreter.Interpret(output, {0, 0}, 10'000).value().value.real(), 5000);
  const int64_t before = interpreter.points();
  EXPECT_EQ(interpreter.Interpret(output, {0, 1}, 60).value().value.real(), 5000);
  EXPECT_LE(interpreter.points() - before, 60);
}

TEST(InterpretElementTest, BoundedFunctionsOfLargeValuesHaveSmallBounds) {
  const Workload workload = ParseElement(
      "input A: f32[1]\n"
      "output T[i: 1] = tanh(A[i] * 3.0)\noutput S[i: 1] = sigmoid(A[i] * 3.0)\n"
      "output N[i: 1] = normal_cdf(A[i] * 3.0)\noutput E[i: 1] = erf(A[i] * 3.0)\n");
  for (const BufferId output : workload.Outputs()) {
    const auto magnitude = [&](double value) {
      return InterpretElement(workload, output, {0}, [&](BufferId, int64_t) { return value; })
          .magnitude;
    };
    EXPECT_LE(magnitude(100), 1);
    EXPECT_LE(magnitude(-100), 1);
    EXPECT_GT(magnitude(0.25), 0.1);
  }
}

// A value without a bound has a root without one, and a positive number may be rounded to 0.
TEST(InterpretElementTest, RootsAndRoundingsDoNotHideUnboundedErrors) {
  const Workload workload = ParseElement(
      "input A: f32[2]\nD[i: 1] = (A[0] + 1e9) - A[1] + 3.0\n"
      "output R[i: 1] = rsqrt(abs(1.0 / D[i]) + 0.5)\n"
      "output S[i: 1] = sqrt(abs(1.0 / D[i]))\n"
      "output F[i: 1] = 1.0 / f32(f16(abs(D[i]) + 1e-8))\n");
  const std::vector<BufferId> outputs = workload.Outputs();
  for (size_t o = 0; o < outputs.size(); ++o) {
    const ElementValue element =
        InterpretElement(workload, outputs[o], {0}, [](BufferId, int64_t at) { return at * 1e9; });
    EXPECT_EQ(std::isfinite(element.magnitude + element.rounding), o < 1) << o;
  }
}

// A divisor or operand of a root that is certainly positive bounds the result, however large its
// error is.
TEST(InterpretElementTest, PositiveLimitsBoundQuotientsAndRoots) {
  const Workload workload = ParseElement(
      "input A: f32[2]\n"
      "D[i: 1] = (A[0] + 1e9) - A[1]\nV[i: 1] = sum(k: 2) (A[k] - A[0]) * (A[k] - A[0])\n"
      "output Q[i: 1] = 1.0 / (abs(D[i]) + 0.5)\noutput R[i: 1] = rsqrt(abs(D[i]) + 0.5)\n"
      "output L[i: 1] = log(exp(D[i]) + 0.5)\noutput N[i: 1] = rsqrt(V[i] + 1e-5)\n"
      "W[i: 1] = D[i] * D[i] - 0.25\n"
      "output M[i: 1] = rsqrt(D[i] * D[i] + 1e-5)\n"
      "output U[i: 1] = rsqrt(W[i] + 0.5)\n");
  const std::vector<BufferId> outputs = workload.Outputs();
  for (size_t o = 0; o < outputs.size(); ++o) {
    const ElementValue element =
        InterpretElement(workload, outputs[o], {0}, [](BufferId, int64_t at) { return at * 1e9; });
    EXPECT_EQ(std::isfinite(element.magnitude), o < 5) << o;
  }
}

TEST(InterpretElementTest, QuotientsAndExponentialsCarryTheErrorOfTheirOperands) {
  const Workload workload = ParseElement(
      "input X: f32[2]\n"
      "output Q[i: 1] = 1.0 / (X[0] - X[1])\n"
      "output E[i: 1] = exp(X[0] - X[1])\n");
  const double inputs[] = {100.25, 100};
  const auto magnitude = [&](int output) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t offset) { return inputs[offset]; })
        .magnitude;
  };
  EXPECT_DOUBLE_EQ(magnitude(0), 4 * (200.25 / 0.25));
  EXPECT_DOUBLE_EQ(magnitude(1), std::exp(0.25) * (1 + 200.25));
}

// An infinite divisor has no error.
TEST(InterpretElementTest, QuotientsByInfinityHaveAMagnitude) {
  const Workload workload = ParseElement(
      "input X: f32[2]\n"
      "output Q[i: 1] = (X[0] - X[1]) / (abs(-inf) + X[1])");
  const double inputs[] = {1000, 1};
  const ElementValue element =
      InterpretElement(workload, workload.Outputs()[0], {0},
                       [&](BufferId, int64_t offset) { return inputs[offset]; });
  EXPECT_EQ(element.value, 0);
  EXPECT_EQ(element.magnitude, 0);
}

TEST(InterpretElementTest, IntegersOf64BitsAreExact) {
  const Workload workload = ParseElement(
      "input A: i64[2]\n"
      "output M[u: 1] = min(k: 2) A[k] + 9007199254740993\n");
  const int64_t inputs[] = {1763800000000000009, 1763800000000000007};
  const ElementValue element =
      InterpretElement(workload, workload.Outputs()[0], {0},
                       [&](BufferId, int64_t offset) -> Scalar { return inputs[offset]; });
  EXPECT_EQ(element.value, 1763800000000000007 + 9007199254740993);
}

// Σ s·exp(x − max): the second component of an online softmax is a sum, not a maximum.
TEST(InterpretElementTest, TheSumOfASoftmaxHasTheMagnitudeOfASum) {
  const Workload workload = ParseElement(
      "input X: f32[64]\n"
      "output (M, S)[u: 1] = online_softmax(k: 64) (X[k], 1.0)");
  const ElementValue sum =
      InterpretElement(workload, workload.Outputs()[1], {0}, [](BufferId, int64_t) { return 2.0; });
  EXPECT_EQ(sum.value, 64);
  EXPECT_EQ(sum.magnitude, 64 * (1 + 2 + 2));
}

// A masked element cannot be the maximum and adds nothing to a sum, however large it is.
TEST(InterpretElementTest, MaskedElementsDoNotWidenTheBounds) {
  for (const char* const masked : {"-inf", "-1e9"}) {
    const Workload workload =
        ParseElement(absl::StrCat("input X: f32[64]\n"
                                  "Z[k: 64] = select(X[k] < 0.5, X[k], ",
                                  masked,
                                  ")\n"
                                  "M[u: 1] = max(k: 64) Z[k]\n"
                                  "output S[u: 1] = sum(k: 64) exp(Z[k] - M[0])"));
    const ElementValue sum =
        InterpretElement(workload, workload.Outputs()[0], {0},
                         [](BufferId, int64_t offset) { return offset % 2 == 0 ? 0.25 : 0.75; });
    EXPECT_EQ(sum.value, 32) << masked;
    EXPECT_EQ(sum.magnitude, 32 * (1 + 0.25 + 0.25)) << masked;
  }
}

// Each of these reads a tensor that was rounded to bf16. Two computations can only round a value
// differently if it is close to the middle of two bf16 numbers.
TEST(InterpretElementTest, RoundingsOnTheWayAreBounded) {
  const Workload workload = ParseElement(
      "input X: bf16[8]\n"
      "C[i: 8] = X[i] * X[i]\n"
      "output D[i: 8] = C[i] + 1.0\n"
      "output E[i: 8] = C[i] * C[i]\n"
      "output F[u: 1] = sum(k: 8) C[k]\n"
      "output G[i: 8] = X[i] * 3.0\n");
  const auto rounding = [&](int output, double x) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t) { return x; })
        .rounding;
  };
  for (int output = 0; output < 4; ++output) EXPECT_EQ(rounding(output, 2.0), 0) << output;
  // The square of 1.0625 lies in the middle between C = 1.125 and the next number.
  constexpr double kUlp = 0x1p-7;
  EXPECT_EQ(rounding(0, 1.0625), kUlp);
  EXPECT_EQ(rounding(1, 1.0625), 1.125 * kUlp + 1.125 * kUlp + kUlp * kUlp);
  EXPECT_EQ(rounding(2, 1.0625), 8 * kUlp);
  EXPECT_EQ(rounding(3, 1.0625), 0);
}

// The same if the masked elements are stored in a short format.
TEST(InterpretElementTest, StoredMasksDoNotWidenTheBounds) {
  const Workload workload = ParseElement(
      "input X: f16[64]\n"
      "Z[k: 64] = select(X[k] < 0.5, X[k], -inf)\n"
      "M[u: 1] = max(k: 64) f32(Z[k])\n"
      "output S[u: 1] = sum(k: 64) exp(f32(Z[k]) - M[0])");
  const ElementValue sum =
      InterpretElement(workload, workload.Outputs()[0], {0},
                       [](BufferId, int64_t offset) { return offset % 2 == 0 ? 0.25 : 0.75; });
  EXPECT_EQ(sum.value, 32);
  EXPECT_EQ(sum.magnitude, 32 * (1 + 0.25 + 0.25));
  EXPECT_EQ(sum.rounding, 0);
}

// A computed float next to a whole number may be converted to that number or to the one below.
TEST(InterpretElementTest, ConversionsToIntegersAreBounded) {
  const Workload workload = ParseElement(
      "input X: f32[8]\n"
      "output C[i: 8] = i8(X[i] * 3.0)\n"
      "output D[i: 8] = i8(X[i])\n");
  const auto rounding = [&](int output, double x) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t) { return x; })
        .rounding;
  };
  EXPECT_EQ(rounding(0, 1.5), 0);
  EXPECT_EQ(rounding(0, 2.0), 1);
  EXPECT_EQ(rounding(1, 2.0), 0);  // an input is exact
}

// The same for whole numbers that stay floats.
TEST(InterpretElementTest, RoundingsToWholeNumbersAreBounded) {
  const Workload workload = ParseElement(
      "input X: f32[8]\n"
      "output R[i: 8] = round(X[i] * 3.0)\n"
      "output F[i: 8] = floor(X[i] * 3.0) * 5.0\n"
      "output C[i: 8] = ceil(X[i])\n"
      "output S[i: 8] = round(round(X[i] * 3.0) + 0.5)\n");
  const auto element = [&](int output, double product) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t) { return product / 3; });
  };
  EXPECT_EQ(element(0, 1.5).rounding, 1);
  EXPECT_EQ(element(0, 1.6).rounding, 0);
  EXPECT_EQ(element(0, 1.6).error, 0);  // it is exact
  EXPECT_EQ(element(1, 3).rounding, 5);
  EXPECT_EQ(element(1, 3.5).rounding, 0);
  EXPECT_EQ(element(2, 3).rounding, 0);    // an input is exact
  EXPECT_EQ(element(3, 1.5).rounding, 2);  // 2.5 ± 1
  EXPECT_FALSE(RoundsOnTheWay(ParseElement("input X: f32[8]\noutput R[i: 8] = round(X[i]) * 0.1")));
}

// A result that a jump may make larger than its value still has a bound on the errors that follow.
TEST(InterpretElementTest, JumpsCountInTheMagnitude) {
  const Workload workload =
      ParseElement("input X: f32[2]\noutput C[u: 1] = ceil(X[0] - X[1]) * 0.1");
  const ElementValue element = InterpretElement(workload, workload.Outputs()[0], {0},
                                                [](BufferId, int64_t) { return 0.01; });
  EXPECT_EQ(element.value, 0);
  EXPECT_GE(element.magnitude, 0.1f);
}

// Powers of inputs have a small bound, and the square of a difference has that of a product.
TEST(InterpretElementTest, PowersCarryTheErrorsOfTheirOperands) {
  const Workload workload = ParseElement(
      "input X: f32[2]\n"
      "output I[u: 1] = pow(X[0], X[1])\n"
      "output S[u: 1] = pow(X[0] - X[1], 2.0)\n"
      "output P[u: 1] = (X[0] - X[1]) * (X[0] - X[1])\n"
      "output R[u: 1] = pow(X[0] - X[1], 0.5)\n"
      "output E[u: 1] = pow(2.0, X[0] * X[1])\n");
  const auto magnitude = [&](int output, double x, double y) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t offset) { return offset == 0 ? x : y; })
        .magnitude;
  };
  EXPECT_EQ(magnitude(0, 3, 4), 81);
  EXPECT_EQ(magnitude(0, -3, 4), 81);
  EXPECT_EQ(magnitude(0, 0, 2), 0);
  EXPECT_NEAR(magnitude(1, 1, 0.75), magnitude(2, 1, 0.75), 0.1 * magnitude(2, 1, 0.75));
  EXPECT_LT(magnitude(1, 1, 1), 1e-4);
  EXPECT_EQ(magnitude(3, 1, 1), INFINITY);
  EXPECT_NEAR(magnitude(4, 3, 1), 8 * (1 + 3 * std::log(2.0)), 1e-3);
}

// A comparison of a computed float has either result near the boundary.
TEST(InterpretElementTest, ComparisonsOfComputedFloatsAreBounded) {
  const Workload workload = ParseElement(
      "input X: f32[8]\n"
      "output A[i: 8] = select(X[i] * 3.0 < 1.5, X[i], 10.0)\n"
      "output B[i: 8] = X[i] * 3.0 < 1.5\n"
      "output C[i: 8] = select(X[i] < 0.5, X[i], 10.0)\n");
  const auto rounding = [&](int output, double x) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t) { return x; })
        .rounding;
  };
  EXPECT_EQ(rounding(0, 0.5), 9.5);
  EXPECT_EQ(rounding(0, 0.51), 0);
  EXPECT_EQ(rounding(1, 0.5), 1);
  EXPECT_EQ(rounding(1, 0.49), 0);
  EXPECT_EQ(rounding(2, 0.5), 0);  // inputs are exact
}

// The next integer may wrap or have another quotient.
TEST(InterpretElementTest, IntegersOfComputedFloatsAreBounded) {
  const Workload workload = ParseElement(
      "input X: f32[8]\n"
      "output A[i: 8] = i8(i32(X[i] * 3.0))\n"
      "output B[i: 8] = i32(X[i] * 3.0) / i32(2)\n"
      "output C[i: 8] = i8(X[i] * 3.0) * i8(2)\n");
  const auto rounding = [&](int output, double product) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t) { return product / 3; })
        .rounding;
  };
  EXPECT_EQ(rounding(0, 128), 255);  // 127 or −128
  EXPECT_EQ(rounding(0, 126), 1);
  EXPECT_EQ(rounding(1, 4), 1.5);
  EXPECT_EQ(rounding(1, 4.5), 0);
  EXPECT_EQ(rounding(2, 62), 2);
  EXPECT_EQ(rounding(2, 64), 255);
}

// A small difference of large numbers has a large relative error, which these functions propagate.
TEST(InterpretElementTest, LogarithmsAndRootsOfDifferencesCarryTheirErrors) {
  const Workload workload = ParseElement(
      "input X: f32[2]\n"
      "output L[u: 1] = log(X[0] - X[1])\n"
      "output R[u: 1] = sqrt(X[0] - X[1])\n"
      "output Q[u: 1] = rsqrt(X[0] - X[1])\n");
  const auto magnitude = [&](int output, double x, double y) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t offset) { return offset == 0 ? x : y; })
        .magnitude;
  };
  EXPECT_DOUBLE_EQ(magnitude(0, 1, 1 - 0x1p-10), (2 - 0x1p-10) / 0x1p-10);
  EXPECT_DOUBLE_EQ(magnitude(1, 1, 1 - 0x1p-10), (2 - 0x1p-10) / (2 * 0x1p-5));
  EXPECT_DOUBLE_EQ(magnitude(2, 1, 1 - 0x1p-10), (2 - 0x1p-10) / (2 * 0x1p-15));
  // The difference may be computed as 0, or as a negative number.
  EXPECT_EQ(magnitude(0, 1, 1 - 0x1p-30), INFINITY);
  EXPECT_EQ(magnitude(1, 1, 1), INFINITY);
  EXPECT_EQ(magnitude(2, 1, 1 - 0x1p-30), INFINITY);
  EXPECT_EQ(magnitude(0, 0, 0), 0);
  EXPECT_EQ(magnitude(1, 0, 0), 0);
}

// Only operands that can be the result of a minimum or maximum contribute their errors.
TEST(InterpretElementTest, ClampedValuesAreExact) {
  const Workload workload = ParseElement(
      "input X: f32[8]\n"
      "output A[i: 8] = min(X[i] * 1000.0, 6.0)\n"
      "output B[i: 8] = i8(max(min(X[i] * 1000.3, 127.0), -128.0))\n"
      "output C[i: 8] = max(min(i32(X[i] * 1000.3), i32(127)), i32(-128))\n");
  const auto element = [&](int output, double x) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t) { return x; });
  };
  EXPECT_EQ(element(0, 1).magnitude, 6);
  EXPECT_EQ(element(0, 0.005).magnitude, 5);
  for (const double x : {1.0, -1.0, 0.1284, 0.05}) {
    EXPECT_EQ(element(1, x).rounding, 0) << x;
    EXPECT_EQ(element(2, x).rounding, 0) << x;
  }
}

// Jumps may be larger than the values.
TEST(InterpretElementTest, LargeJumpsAreBounded) {
  const Workload workload = ParseElement(
      "input X: f32[8]\n"
      "D[i: 8] = select(X[i] * 3.0 < 3.0, 100.0, 1.0)\n"
      "Q[i: 8] = i32(X[i] * 3.0)\n"
      "output A[i: 8] = 1.0 / D[i]\n"
      "output B[i: 8] = log(D[i])\n"
      "output C[i: 8] = rsqrt(D[i])\n"
      "output E[i: 8] = sqrt(D[i])\n"
      "output F[i: 8] = i32(100) / Q[i]\n"
      "output G[u: 1] = max(k: 8) select(X[k] * 3.0 < 3.0, 5.0, 100.0)\n"
      "(M, S)[u: 1] = online_softmax(k: 8) (select(X[k] * 3.0 < 3.0, 7.0, 0.0), 1.0)\n"
      "output H[u: 1] = S[u]\n"
      "N[u: 1] = sum(k: 8) select(X[k] * 3.0 < 3.0, 0.0, 1.0)\n"
      "output J[u: 1] = N[u] < 8.0\n"
      "(V, I)[u: 1] = argmax(k: 8) (select(X[k] * 3.0 < 3.0, 0.0, 1.0), index(k))\n"
      "output K[u: 1] = I[u]\n");
  const auto expect = [&](int output, double x, double least) {
    const ElementValue element =
        InterpretElement(workload, workload.Outputs()[output], {0},
                         [&](BufferId, int64_t offset) { return offset == 0 ? x : 1; });
    EXPECT_GE(element.rounding, least) << output;
  };
  expect(0, 1, 0.99);
  expect(1, 1, std::log(100));
  expect(2, 1, 0.9);
  expect(3, 1, 9);
  expect(4, 1.0 / 3, 100);
  expect(5, 1, 95);
  expect(6, 1, 7);
  expect(7, 1, 1);
  expect(8, 1, 7);
}

// Either of two nearly equal computed values may be the maximum.
TEST(InterpretElementTest, IndicesOfNearTiesAreBounded) {
  const Workload workload = ParseElement(
      "input X: f32[8]\n"
      "(V, I)[u: 1] = argmax(k: 8) (X[k] * 3.0, index(k))\n"
      "(W, J)[u: 1] = argmax(k: 8) (X[k], index(k))\n"
      "output A[u: 1] = I[u]\n"
      "output B[u: 1] = J[u]\n");
  const double x[] = {0.25, 1, 0.5, 0, 0, 1 - 0x1p-24, 0.5, 0.99};
  const auto element = [&](int output) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t offset) { return x[offset]; });
  };
  EXPECT_EQ(element(0).value, 1);
  EXPECT_EQ(element(0).rounding, 4);
  EXPECT_EQ(element(1).value, 1);
  EXPECT_EQ(element(1).rounding, 0);
}

// Relative errors of factors add up.
TEST(InterpretElementTest, MagnitudesOfFactorsAddUp) {
  const Workload workload = ParseElement(
      "input X: f64[2]\n"
      "output P[u: 1] = (X[0] - X[1]) * (X[0] + X[1])\n"
      "output Q[u: 1] = X[0] * (X[0] - X[1])\n"
      "output R[u: 1] = (X[0] * X[0]) * (X[1] * X[1])");
  const double inputs[] = {3, 1};
  const auto magnitude = [&](int output) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t offset) { return inputs[offset]; })
        .magnitude;
  };
  // Both factors have the magnitude 4; their values are 2 and 4.
  EXPECT_DOUBLE_EQ(magnitude(0), 2 * 4 + 4 * 4);
  EXPECT_DOUBLE_EQ(magnitude(1), 3 * 4);
  EXPECT_DOUBLE_EQ(magnitude(2), 2 * 9);
}

}  // namespace
}  // namespace hone::ir
