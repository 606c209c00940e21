#include "worker/runner/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/ir/dtype.h"
#include "common/ir/error_bound.h"
#include "worker/runner/inputs.h"

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
    signature_.roundoff = ir::UnitRoundoff(GetParam());
    signature_.relative_error = 32 * signature_.roundoff;
    for (int i = 0; i < kElements; ++i) {
      values_.push_back(i - 10);
      magnitudes_.push_back(std::fabs(i - 10) + 5);
      ir::WriteElement(GetParam(), data_.data(), i, i - 10);
    }
  }
  CheckResult Check(double tolerance = 0) {
    return CheckOutput(spec_, data_.data(), Reference(), signature_, tolerance);
  }
  CheckResult Exact() { return CheckExact(spec_, data_.data(), Reference(), signature_); }
  Expected Reference() const {
    return {.values = values_.data(),
            .magnitudes = magnitudes_.data(),
            .roundings = roundings_.empty() ? nullptr : roundings_.data()};
  }
  // The allowed error of element i.
  double Bound(int i) const {
    return signature_.relative_error * magnitudes_[i] + signature_.roundoff * std::fabs(values_[i]);
  }

  TensorSpec spec_;
  Signature signature_;
  std::vector<char> data_;
  std::vector<double> values_;
  std::vector<double> magnitudes_;
  std::vector<double> roundings_;
};

TEST_P(CheckTest, AcceptsErrorsWithinTheBound) {
  EXPECT_TRUE(Check().ok);
  EXPECT_EQ(Check().max_error, 0);
  EXPECT_TRUE(Exact().ok);
  values_[20] += 0.9 * Bound(20);
  const CheckResult result = Check();
  EXPECT_TRUE(result.ok) << result.detail;
  EXPECT_NEAR(result.max_error, 0.9, 0.05);
  EXPECT_FALSE(Exact().ok);
}

TEST_P(CheckTest, NamesTheFirstWrongElement) {
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
  if (GetParam() != DType::kF32) GTEST_SKIP() << "other types round differently";
  values_[20] += 2.5e-5 * magnitudes_[20];
  for (const CheckResult& result : {Check(), Exact()}) {
    EXPECT_FALSE(result.ok);
    EXPECT_THAT(result.detail, HasSubstr("a tolerance of 3e-05 allows it"));
  }
  EXPECT_TRUE(Check(3e-5).ok);
  values_[21] += 1;  // larger than the error of a less accurate algorithm
  EXPECT_THAT(Check().detail, Not(HasSubstr("tolerance")));
  EXPECT_THAT(Exact().detail, Not(HasSubstr("tolerance")));
  values_[21] -= 1;
  ir::WriteElement(GetParam(), data_.data(), 33, NAN);
  EXPECT_THAT(Check().detail, Not(HasSubstr("tolerance")));
}

// The effect of an intermediate rounding is allowed in addition to the arithmetic error.
TEST_P(CheckTest, RoundingsAreAllowedWhereTheyHappen) {
  const double off = 3 * Bound(20);
  values_[20] += off;
  EXPECT_FALSE(Check().ok);
  roundings_.assign(kElements, 0);
  EXPECT_FALSE(Check().ok);
  roundings_[20] = off;
  EXPECT_TRUE(Check().ok) << Check().detail;
  values_[21] += off;
  EXPECT_FALSE(Check().ok);
}

TEST_P(CheckTest, NaNIsWrongUnlessExpected) {
  ir::WriteElement(GetParam(), data_.data(), 33, NAN);
  const CheckResult result = Check(1);
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(std::isfinite(result.max_error));
  EXPECT_FALSE(Exact().ok);
  values_[33] = NAN;
  EXPECT_TRUE(Check().ok);
}

TEST_P(CheckTest, InfinityIsRightOnlyWhereExpected) {
  ir::WriteElement(GetParam(), data_.data(), 3, INFINITY);
  EXPECT_FALSE(Check(1).ok);
  values_[3] = INFINITY;
  magnitudes_[3] = INFINITY;
  EXPECT_TRUE(Check().ok);
  values_[3] = -INFINITY;
  EXPECT_FALSE(Check().ok);
}

// The reference is computed in f64. A kernel may overflow where the reference exceeds the range of
// its dtype.
TEST_P(CheckTest, AnOverflowIsRightWhereTheReferenceLeavesTheRange) {
  if (GetParam() == DType::kF64) GTEST_SKIP() << "nothing is beyond the range of f64";
  const double beyond = GetParam() == DType::kF16 ? 1e5 : 1e39;
  for (const int index : {3, kElements - 1}) {
    for (const double sign : {1.0, -1.0}) {
      values_[index] = sign * beyond;
      magnitudes_[index] = beyond;
      ir::WriteElement(GetParam(), data_.data(), index, sign * INFINITY);
      EXPECT_TRUE(Check().ok) << Check().detail;
      ir::WriteElement(GetParam(), data_.data(), index, -sign * INFINITY);
      EXPECT_FALSE(Check().ok);
      ir::WriteElement(GetParam(), data_.data(), index, sign * 1000);
      EXPECT_FALSE(Check().ok);
    }
    values_[index] = index - 10;
    magnitudes_[index] = std::fabs(values_[index]) + 5;
    ir::WriteElement(GetParam(), data_.data(), index, index - 10);
  }
}

INSTANTIATE_TEST_SUITE_P(FloatTypes, CheckTest,
                         ::testing::Values(DType::kF16, DType::kBF16, DType::kF32, DType::kF64),
                         [](const auto& info) { return std::string(ir::DTypeName(info.param)); });

// The reference in f64 is beyond the range of a dtype that saturates.
TEST(CheckSaturationTest, TheLargestNumberIsRightWhereTheReferenceIsBeyondIt) {
  Signature signature;
  signature.roundoff = ir::UnitRoundoff(DType::kF32);
  signature.relative_error = 4 * signature.roundoff;
  for (const auto& [dtype, largest] :
       {std::pair{DType::kF8E4M3, 448.0}, {DType::kF8E5M2, 57344.0}}) {
    const TensorSpec spec = {"C", dtype, 1};
    const auto accepts = [&](double reference, double got) {
      char data[1];
      ir::WriteElement(dtype, data, 0, got);
      const double magnitude = std::fabs(reference);
      const Expected expected = {.values = &reference, .magnitudes = &magnitude};
      return CheckOutput(spec, data, expected, signature, 0).ok;
    };
    for (const double sign : {1.0, -1.0}) {
      for (const double beyond : {1.3 * largest, 1e5, 1e6}) {
        EXPECT_TRUE(accepts(sign * beyond, sign * largest)) << beyond;
        EXPECT_FALSE(accepts(sign * beyond, -sign * largest)) << beyond;
        EXPECT_FALSE(accepts(sign * beyond, sign * largest / 2)) << beyond;
        EXPECT_FALSE(accepts(sign * beyond, NAN)) << beyond;
      }
      EXPECT_TRUE(accepts(sign * INFINITY, sign * INFINITY));
      EXPECT_EQ(accepts(sign * INFINITY, sign * largest), dtype == DType::kF8E4M3);
      // The arithmetic in f32 overflows before the rounding.
      EXPECT_TRUE(accepts(sign * 1e39, sign * INFINITY));
      EXPECT_EQ(accepts(sign * 1e30, sign * INFINITY), dtype == DType::kF8E4M3);
    }
    EXPECT_TRUE(accepts(NAN, NAN));
  }
}

// A denormal may be rounded up or down, and no further.
TEST(CheckSaturationTest, SmallNumbersOf8BitsAreNotArbitrary) {
  const TensorSpec spec = {"C", DType::kF8E4M3, 1};
  const Signature signature;
  char data[1];
  ir::WriteElement(spec.dtype, data, 0, 0x1p-8);
  for (const auto& [value, right] : {std::pair{0x1p-8, true}, {0x1.3p-8, true}, {0x1p-7, false}}) {
    const double reference = value, magnitude = value;
    const Expected expected = {.values = &reference, .magnitudes = &magnitude};
    EXPECT_EQ(CheckOutput(spec, data, expected, signature, 0).ok, right) << value;
  }
}

TEST(CheckIntegerTest, IntegerTypesMustBeEqual) {
  const TensorSpec spec = {"C", DType::kI32, 3};
  Signature signature;
  signature.terms = 100;
  const int32_t data[] = {1, -2, 3};
  const double values[] = {1, -2, 3};
  const double off[] = {1, -2, 4};
  const double magnitudes[] = {100, 100, 100};
  const auto check = [&](const double* expected) {
    const Expected reference = {.values = expected, .magnitudes = magnitudes};
    return CheckOutput(spec, data, reference, signature, 0).ok;
  };
  EXPECT_TRUE(check(values));
  EXPECT_FALSE(check(off));
}

// Doubles cannot tell these numbers from their neighbours.
TEST(CheckIntegerTest, IntegersOf64BitsAreComparedExactly) {
  const TensorSpec spec = {"C", DType::kI64, 2};
  Signature signature;
  signature.terms = 100;
  const int64_t data[] = {(int64_t{1} << 53) + 1, std::numeric_limits<int64_t>::min()};
  const int64_t off[] = {int64_t{1} << 53, std::numeric_limits<int64_t>::min() + 1};
  const double magnitudes[] = {0x1p53, 0x1p63};
  for (const int wrong : {-1, 0, 1}) {
    int64_t values[] = {data[0], data[1]};
    if (wrong >= 0) values[wrong] = off[wrong];
    const Expected reference = {.dtype = DType::kI64, .values = values, .magnitudes = magnitudes};
    EXPECT_EQ(CheckOutput(spec, data, reference, signature, 0).ok, wrong < 0);
    EXPECT_EQ(CheckExact(spec, data, reference, signature).ok, wrong < 0);
  }
  const Expected first = {.dtype = DType::kI64, .values = off, .magnitudes = magnitudes};
  EXPECT_NE(CheckOutput(spec, data, first, signature, 0)
                .detail.find("C: element 0 is 9007199254740993, expected 9007199254740992"),
            std::string::npos);
}

TEST(IsExactTest, ASumIsExactWhileNoPartialSumLeavesTheExactRange) {
  const TensorSpec spec = {"C", DType::kF32, 2};
  Signature signature;
  signature.roundoff = ir::UnitRoundoff(DType::kF32);
  signature.keeps_integers = true;
  const auto is_exact = [&](const double* expected, const double* magnitudes) {
    return IsExact(spec, {.values = expected, .magnitudes = magnitudes}, signature);
  };
  const double values[] = {5, -7};
  const double fractions[] = {5, -7.5};
  const double small[] = {100, 0x1p24};
  const double large[] = {100, 0x1p24 + 2};
  EXPECT_TRUE(is_exact(values, small));
  EXPECT_FALSE(is_exact(values, large));
  EXPECT_FALSE(is_exact(fractions, small));
  signature.rounding = ir::UnitRoundoff(DType::kF16);  // an intermediate f16 stage
  EXPECT_FALSE(is_exact(values, small));
}

// The sum is exact in f32 and is rounded once.
TEST(IsExactTest, OutputsOfShortFormatsAreTheRoundedSum) {
  const TensorSpec spec = {"C", DType::kBF16, 1};
  Signature signature;
  signature.roundoff = ir::UnitRoundoff(DType::kF32);
  signature.keeps_integers = true;
  const double values[] = {4097}, magnitudes[] = {5000};
  const Expected expected = {.values = values, .magnitudes = magnitudes};
  EXPECT_TRUE(IsExact(spec, expected, signature));
  std::vector<char> data(spec.bytes());
  ir::WriteElement(spec.dtype, data.data(), 0, 4096);
  EXPECT_TRUE(CheckExact(spec, data.data(), expected, signature).ok);
  ir::WriteElement(spec.dtype, data.data(), 0, 4128);  // the next bf16
  EXPECT_FALSE(CheckExact(spec, data.data(), expected, signature).ok);
}

}  // namespace
}  // namespace hone::runner
