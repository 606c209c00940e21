#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "common/ir/dtype.h"

namespace hone::ir {
namespace {

constexpr int64_t kTwo53 = int64_t{1} << 53;

TEST(ScalarTest, IntegersDropTheFractionAndWrap) {
  EXPECT_EQ(CastTo(DType::kI8, 127.9), 127);
  EXPECT_EQ(CastTo(DType::kI8, -128.9), -128);
  EXPECT_EQ(CastTo(DType::kI8, 128), -128);
  EXPECT_EQ(CastTo(DType::kI8, -129), 127);
  EXPECT_EQ(CastTo(DType::kU8, 256 + 7), 7);
  EXPECT_EQ(CastTo(DType::kU8, -1), 255);
  EXPECT_EQ(CastTo(DType::kI32, 2147483648.0), -2147483648.0);
  EXPECT_EQ(CastTo(DType::kI64, 0x1p63), -0x1p63);
  EXPECT_EQ(CastTo(DType::kI64, 0x1p64), 0);
  EXPECT_EQ(CastTo(DType::kI32, -(0x1p64 + 0x1p13)), -0x1p13);
  EXPECT_EQ(CastTo(DType::kI32, INFINITY), 0);
  EXPECT_EQ(CastTo(DType::kU8, std::nan("")), 0);
  EXPECT_EQ(CastTo(DType::kBool, -3.5), 1);
  EXPECT_EQ(CastTo(DType::kBool, 0), 0);
}

TEST(ScalarTest, WholeNumbersCompareExactly) {
  EXPECT_FALSE(Scalar(kTwo53) == Scalar(kTwo53 + 1));
  EXPECT_TRUE(Scalar(kTwo53) < Scalar(kTwo53 + 1));
  EXPECT_TRUE(Scalar(std::numeric_limits<int64_t>::min()) < Scalar(-1));
  EXPECT_TRUE(Scalar(3) == Scalar(3.0));
  EXPECT_FALSE(Scalar(NAN) == Scalar(NAN));
  EXPECT_FALSE(Scalar(NAN) <= Scalar(0));
}

// Rounding to f64 first would turn a number above a tie into the tie.
TEST(ScalarTest, WholeNumbersRoundOnce) {
  const int64_t tie = (int64_t{1} << 60) + (int64_t{1} << 52);  // between two bf16
  EXPECT_EQ(CastTo(DType::kBF16, tie), 0x1p60);
  EXPECT_EQ(CastTo(DType::kBF16, tie + 1), 0x1.02p60);
  EXPECT_EQ(CastTo(DType::kBF16, -tie - 1), -0x1.02p60);
  const int64_t near = (int64_t{1} << 40) + (int64_t{1} << 16);  // a tie between two f32
  EXPECT_EQ(CastTo(DType::kF32, near), 0x1p40);
  EXPECT_EQ(CastTo(DType::kF32, near + 1), 0x1.000002p40);
  EXPECT_EQ(CastTo(DType::kF64, kTwo53 + 1), 0x1p53);
}

// Digests are permanent: a whole number that a double represents has the digest of that double.
TEST(ScalarTest, DigestsDistinguishLargeNumbers) {
  const auto digest = [](Scalar value) {
    DigestBuilder builder;
    AddTo(builder, value);
    return builder.Finish();
  };
  EXPECT_EQ(digest(7), digest(7.0));
  EXPECT_EQ(digest(kTwo53), digest(0x1p53));
  EXPECT_NE(digest(kTwo53 + 1), digest(kTwo53));
  EXPECT_NE(digest(kTwo53 + 1), digest(kTwo53 + 2));
}

}  // namespace
}  // namespace hone::ir
