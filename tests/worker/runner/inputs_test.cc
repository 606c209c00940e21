#include "worker/runner/inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/ir/dtype.h"

namespace hone::runner {
namespace {

using ir::DType;

constexpr DType kAll[] = {DType::kF16,  DType::kBF16,   DType::kF32,   DType::kF64,
                          DType::kI8,   DType::kU8,     DType::kI32,   DType::kI64,
                          DType::kBool, DType::kF8E4M3, DType::kF8E5M2};

TEST(ElementsTest, EveryTypeRoundTrips) {
  for (const DType dtype : kAll) {
    const auto check = [dtype](double value) {
      char memory[16] = {};
      ir::WriteElement(dtype, memory, 1, value);
      EXPECT_EQ(ir::ReadElement(dtype, memory, 1), ir::CastTo(dtype, value))
          << ir::DTypeName(dtype) << " " << value;
    };
    for (const double value : {0.0, 1.0}) check(value);
    if (dtype == DType::kBool) continue;
    for (const double value : {3.0, 100.0}) check(value);
    if (dtype == DType::kU8) continue;
    for (const double value : {-1.0, -7.0}) check(value);
    if (!ir::IsFloat(dtype)) continue;
    for (const double value : {0.1, -1.5e-7, 6e-8, 1e-3, 12345.678, 0.999999, -65504.0})
      check(value);
  }
}

TEST(ElementsTest, PackedElementsDoNotDisturbTheirNeighbours) {
  for (const ir::DType dtype : {ir::DType::kI4, ir::DType::kU4}) {
    const int least = dtype == ir::DType::kI4 ? -8 : 0;
    unsigned char bytes[8] = {};
    for (int e = 15; e >= 0; --e) ir::WriteElement(dtype, bytes, e, e + least);
    ir::WriteElement(dtype, bytes, 4, 16 + least + 3);  // wraps
    for (int e = 0; e < 16; ++e) {
      EXPECT_EQ(ir::ReadElement(dtype, bytes, e), ir::Scalar((e == 4 ? 3 : e) + least)) << e;
    }
    EXPECT_EQ(bytes[7], dtype == ir::DType::kI4 ? 0x76 : 0xfe);
  }
}

TEST(ElementsTest, HalvesHaveTheBitsOfTheStandard) {
  const auto bits = [](double value) {
    uint16_t half = 0;
    ir::WriteElement(DType::kF16, &half, 0, value);
    return half;
  };
  EXPECT_EQ(bits(1), 0x3c00);
  EXPECT_EQ(bits(-2), 0xc000);
  EXPECT_EQ(bits(65504), 0x7bff);
  EXPECT_EQ(bits(0x1p-24), 0x0001);
  EXPECT_EQ(bits(0x1p-14), 0x0400);
  EXPECT_EQ(bits(INFINITY), 0x7c00);
  EXPECT_EQ(bits(0.333251953125), 0x3555);
}

TEST(ElementsTest, EightBitFloatsHaveTheBitsOfTheStandard) {
  const auto bits = [](DType dtype, double value) {
    uint8_t byte = 0;
    ir::WriteElement(dtype, &byte, 0, value);
    return static_cast<int>(byte);
  };
  EXPECT_EQ(bits(DType::kF8E4M3, 1), 0x38);
  EXPECT_EQ(bits(DType::kF8E4M3, -448), 0xfe);
  EXPECT_EQ(bits(DType::kF8E4M3, 0x1p-6), 0x08);
  EXPECT_EQ(bits(DType::kF8E4M3, -0x1p-9), 0x81);
  EXPECT_EQ(bits(DType::kF8E4M3, INFINITY), 0x7e);
  EXPECT_EQ(bits(DType::kF8E4M3, NAN), 0x7f);
  EXPECT_EQ(bits(DType::kF8E5M2, 1), 0x3c);
  EXPECT_EQ(bits(DType::kF8E5M2, -57344), 0xfb);
  EXPECT_EQ(bits(DType::kF8E5M2, 0x1p-16), 0x01);
  EXPECT_EQ(bits(DType::kF8E5M2, -INFINITY), 0xfc);
  for (int code = 0; code < 256; ++code) {
    for (const DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
      const auto byte = static_cast<uint8_t>(code);
      const double value = ir::ReadElement(dtype, &byte, 0).real();
      if (!std::isnan(value)) {
        EXPECT_EQ(bits(dtype, value), code);
      }
    }
  }
}

TEST(ElementsTest, FillingsAreRepeatableAndKeepTheirRange) {
  for (const DType dtype : kAll) {
    const TensorSpec spec = {"x", dtype, 1000};
    std::vector<char> first(spec.bytes()), second(spec.bytes()), other(spec.bytes());
    for (const Filling filling : {Filling::kReal, Filling::kInteger}) {
      FillTensor(spec, filling, 7, 0, first.data());
      FillTensor(spec, filling, 7, 0, second.data());
      FillTensor(spec, filling, 7, 1, other.data());
      EXPECT_EQ(first, second);
      EXPECT_NE(first, other);
      double lowest = 1e9, highest = -1e9;
      for (int i = 0; i < 1000; ++i) {
        const double value = ir::ReadElement(dtype, first.data(), i).real();
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
        if (filling == Filling::kInteger) {
          EXPECT_EQ(value, std::rint(value));
        }
      }
      const double limit = filling == Filling::kInteger ? 3 : ir::IsFloat(dtype) ? 1 : 15;
      EXPECT_LE(highest, limit);
      EXPECT_GE(lowest, -limit);
      EXPECT_GT(highest, lowest);
    }
  }
}

TEST(ElementsTest, RealsAreTheSameOnEveryMachine) {
  const TensorSpec spec = {"x", DType::kF32, 4};
  float data[4];
  FillTensor(spec, Filling::kReal, 1, 2, data);
  EXPECT_EQ(std::ldexp(data[0], 23), 6895846);
  EXPECT_EQ(std::ldexp(data[3], 23), -5650548);
}

}  // namespace
}  // namespace hone::runner
