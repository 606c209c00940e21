#include "worker/runner/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "worker/runner/elements.h"

namespace hone::runner {
namespace {

using ir::DType;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kElements = 37;  // not a multiple of the vector scan's lanes

class CheckTest : public ::testing::TestWithParam<DType> {
 protected:
  CheckTest() : spec_{"C", GetParam(), kElements}, data_(spec_.bytes()) {
    signature_.outputs = {spec_};
    signature_.terms = 64;
    signature_.roundoff = UnitRoundoff(GetParam());
    for (int i = 0; i < kElements; ++i) {
      values_.push_back(i - 10);
      magnitudes_.push_back(std::fabs(i - 10) + 5);
      WriteElement(GetParam(), data_.data(), i, i - 10);
    }
  }
  CheckResult Check(double tolerance = 0) {
    return CheckOutput(spec_, data_.data(), {values_.data(), magnitudes_.data()}, signature_,
                       tolerance);
  }
  CheckResult Exact() {
    return CheckExact(spec_, data_.data(), {values_.data(), magnitudes_.data()});
  }
  // The allowed error of element i.
  double Bound(int i) const {
    return 4 * signature_.roundoff * 8 * magnitudes_[i] +
           signature_.roundoff * std::fabs(values_[i]);
  }

  TensorSpec spec_;
  Signature signature_;
  std::vector<char> data_;
  std::vector<double> values_;
  std::vector<double> magnitudes_;
};

TEST_P(CheckTest, AcceptsWhatIsWithinTheBound) {
  EXPECT_TRUE(Check().ok);
  EXPECT_EQ(Check().max_error, 0);
  EXPECT_TRUE(Exact().ok);
  values_[20] += 0.9 * Bound(20);
  const CheckResult result = Check();
  EXPECT_TRUE(result.ok) << result.detail;
  EXPECT_NEAR(result.max_error, 0.9, 0.05);
  EXPECT_FALSE(Exact().ok);
}

TEST_P(CheckTest, NamesTheFirstElementThatIsNot) {
  for (const int index : {0, 20, kElements - 1}) {
    values_[index] += 1.1 * Bound(index);
    const CheckResult result = Check();
    EXPECT_FALSE(result.ok);
    EXPECT_NEAR(result.max_error, 1.1, 0.05);
    EXPECT_THAT(result.detail, HasSubstr("C: element " + std::to_string(index) + " is"));
    EXPECT_TRUE(Check(0.5).ok);  // a relaxed tolerance accepts it
    values_[index] = index - 10;
  }
}

TEST_P(CheckTest, ErrorsOfTheSizeOfRoundingsNameATolerance) {
  if (GetParam() != DType::kF32) GTEST_SKIP() << "others' roundings differ";
  values_[20] += 2.5e-5 * magnitudes_[20];
  for (const CheckResult& result : {Check(), Exact()}) {
    EXPECT_FALSE(result.ok);
    EXPECT_THAT(result.detail, HasSubstr("; a tolerance of 3e-05 would allow it"));
  }
  EXPECT_TRUE(Check(3e-5).ok);
  values_[21] += 1;  // that is no rounding
  EXPECT_THAT(Check().detail, Not(HasSubstr("tolerance")));
  EXPECT_THAT(Exact().detail, Not(HasSubstr("tolerance")));
  values_[21] -= 1;
  WriteElement(GetParam(), data_.data(), 33, NAN);
  EXPECT_THAT(Check().detail, Not(HasSubstr("tolerance")));
}

TEST_P(CheckTest, NaNIsWrongUnlessExpected) {
  WriteElement(GetParam(), data_.data(), 33, NAN);
  const CheckResult result = Check(1);
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(std::isfinite(result.max_error));
  EXPECT_FALSE(Exact().ok);
  values_[33] = NAN;
  EXPECT_TRUE(Check().ok);
}

TEST_P(CheckTest, InfinityIsRightOnlyWhereExpected) {
  WriteElement(GetParam(), data_.data(), 3, INFINITY);
  EXPECT_FALSE(Check(1).ok);
  values_[3] = INFINITY;
  magnitudes_[3] = INFINITY;
  EXPECT_TRUE(Check().ok);
  values_[3] = -INFINITY;
  EXPECT_FALSE(Check().ok);
}

// The reference is computed in f64, where the kernel's dtype overflows.
TEST_P(CheckTest, AnOverflowIsRightWhereTheReferenceLeavesTheRange) {
  if (GetParam() == DType::kF64) GTEST_SKIP() << "nothing is beyond the range of f64";
  const double beyond = GetParam() == DType::kF16 ? 1e5 : 1e39;
  for (const int index : {3, kElements - 1}) {
    for (const double sign : {1.0, -1.0}) {
      values_[index] = sign * beyond;
      magnitudes_[index] = beyond;
      WriteElement(GetParam(), data_.data(), index, sign * INFINITY);
      EXPECT_TRUE(Check().ok) << Check().detail;
      WriteElement(GetParam(), data_.data(), index, -sign * INFINITY);
      EXPECT_FALSE(Check().ok);
      WriteElement(GetParam(), data_.data(), index, sign * 1000);
      EXPECT_FALSE(Check().ok);
    }
    values_[index] = index - 10;
    magnitudes_[index] = std::fabs(values_[index]) + 5;
    WriteElement(GetParam(), data_.data(), index, index - 10);
  }
}

INSTANTIATE_TEST_SUITE_P(FloatTypes, CheckTest,
                         ::testing::Values(DType::kF16, DType::kBF16, DType::kF32, DType::kF64),
                         [](const auto& info) { return std::string(ir::DTypeName(info.param)); });

TEST(CheckIntegerTest, IntegerTypesMustBeEqual) {
  const TensorSpec spec = {"C", DType::kI32, 3};
  Signature signature;
  signature.terms = 100;
  const int32_t data[] = {1, -2, 3};
  const double values[] = {1, -2, 3};
  const double off[] = {1, -2, 4};
  const double magnitudes[] = {100, 100, 100};
  EXPECT_TRUE(CheckOutput(spec, data, {values, magnitudes}, signature, 0).ok);
  EXPECT_FALSE(CheckOutput(spec, data, {off, magnitudes}, signature, 0).ok);
}

TEST(IsExactTest, ASumIsExactWhileNoPartialSumLeavesTheExactRange) {
  const TensorSpec spec = {"C", DType::kF32, 2};
  Signature signature;
  signature.roundoff = UnitRoundoff(DType::kF32);
  const double values[] = {5, -7};
  const double fractions[] = {5, -7.5};
  const double small[] = {100, 0x1p24};
  const double large[] = {100, 0x1p24 + 2};
  EXPECT_TRUE(IsExact(spec, {values, small}, signature));
  EXPECT_FALSE(IsExact(spec, {values, large}, signature));
  EXPECT_FALSE(IsExact(spec, {fractions, small}, signature));
  signature.roundoff = UnitRoundoff(DType::kF16);  // an f16 stage on the way
  EXPECT_FALSE(IsExact(spec, {values, small}, signature));
}

}  // namespace
}  // namespace hone::runner
