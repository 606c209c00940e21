// The 8-bit floats in compiled code: every code becomes the number that the format defines, and
// every number becomes the nearest code. The definitions here share no code with Hone.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/target/kernel_abi.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

struct Format {
  const char* name;
  int fraction_bits, bias;
  uint8_t largest;   // the code of the largest number
  uint8_t infinity;  // the code of an infinity: in f8e4m3, of the largest number
};
constexpr Format kE4M3 = {"f8e4m3", 3, 7, 0x7e, 0x7e};
constexpr Format kE5M2 = {"f8e5m2", 2, 15, 0x7b, 0x7c};

float NumberOf(const Format& format, uint8_t code) {
  const float sign = code & 0x80 ? -1 : 1;
  const int magnitude = code & 0x7f, exponent = magnitude >> format.fraction_bits;
  const int fraction = magnitude & ((1 << format.fraction_bits) - 1);
  if (magnitude > format.infinity) return NAN;
  if (magnitude > format.largest) return sign * INFINITY;
  const int significand = fraction + (exponent > 0 ? 1 << format.fraction_bits : 0);
  return sign * std::ldexp(static_cast<float>(significand),
                           std::max(exponent, 1) - format.bias - format.fraction_bits);
}

// The nearest code, by a search among all numbers. The code of a NaN is not defined.
uint8_t CodeOf(const Format& format, float number) {
  const uint8_t sign = std::signbit(number) ? 0x80 : 0;
  if (std::isinf(number)) return sign | format.infinity;
  const double magnitude = std::fabs(number);
  uint8_t low = 0, high = format.largest;
  while (high - low > 1) {
    const auto middle = static_cast<uint8_t>((low + high) / 2);
    (NumberOf(format, middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - NumberOf(format, low),
               above = NumberOf(format, high) - magnitude;
  const bool up = below > above || (below == above && high % 2 == 0);
  return sign | (up ? high : low);
}

// A kernel of an elementwise workload with one input X and one output Y, called on raw memory.
class Kernel {
 public:
  Kernel(const target::Target& target, const std::string& workload, int lanes) {
    auto loaded =
        CompiledProgram::Load(ReplayText(WithVectors(workload, {"Y"}, lanes)).value(), target);
    EXPECT_THAT(loaded, IsOk());
    program_ = *std::move(loaded);
  }
  template <typename To, typename From>
  std::vector<To> Run(const std::vector<From>& input) {
    constexpr size_t kRoom = 1 << 12;  // aligned_alloc wants multiples of the alignment
    const auto bytes = [](size_t size) { return (size + kRoom) / kRoom * kRoom; };
    const std::unique_ptr<void, decltype(&std::free)> from(
        std::aligned_alloc(64, bytes(input.size() * sizeof(From))), &std::free);
    const std::unique_ptr<void, decltype(&std::free)> to(
        std::aligned_alloc(64, bytes(input.size() * sizeof(To))), &std::free);
    std::memcpy(from.get(), input.data(), input.size() * sizeof(From));
    void* const buffers[] = {from.get(), to.get()};
    const HoneRuntime runtime = {.threads = 1};
    const auto run = reinterpret_cast<target::RunFunction>(program_->Symbol(target::kRunSymbol));
    EXPECT_EQ(run(buffers, nullptr, nullptr, &runtime), target::kKernelOk);
    std::vector<To> output(input.size());
    std::memcpy(output.data(), to.get(), output.size() * sizeof(To));
    return output;
  }

 private:
  std::unique_ptr<CompiledProgram> program_;
};

class Float8Test : public ::testing::TestWithParam<Format> {
 protected:
  // Calls `check` with a kernel of Y[i] = `value` for several vector widths on every target, among
  // them an x86-64 CPU without conversions of f16.
  template <typename Check>
  void OnEveryTarget(size_t elements, const char* from, const std::string& value, Check check) {
    std::vector<target::Target> targets = RunnableTargets();
    targets.push_back({.cpu = "x86-64", .vector_bits = 128});
    const std::string text = absl::StrCat("workload w\ninput X: ", from, "[", elements,
                                          "]\noutput Y[i: ", elements, "] = ", value, "\n");
    for (const target::Target& target : targets) {
      for (const int lanes : {1, 16, 64}) {
        SCOPED_TRACE(absl::StrCat(target.cpu, ", ", lanes, " lanes"));
        Kernel kernel(target, text, lanes);
        check(kernel);
      }
    }
  }
};

TEST_P(Float8Test, EveryCodeIsItsNumber) {
  std::vector<uint8_t> codes(256);
  for (int code = 0; code < 256; ++code) codes[code] = static_cast<uint8_t>(code);
  OnEveryTarget(256, GetParam().name, "f32(X[i])", [&](Kernel& kernel) {
    const std::vector<float> numbers = kernel.Run<float>(codes);
    for (int code = 0; code < 256; ++code) {
      const float expected = NumberOf(GetParam(), codes[code]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(numbers[code])) << code;
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(numbers[code]), std::bit_cast<uint32_t>(expected))
            << code << " is " << numbers[code] << ", expected " << expected;
      }
    }
  });
}

// A copy keeps every number, also infinities.
TEST_P(Float8Test, ACopyKeepsEveryCode) {
  std::vector<uint8_t> codes;
  for (int code = 0; code < 256; ++code) codes.push_back(static_cast<uint8_t>(code));
  OnEveryTarget(256, GetParam().name, "X[i]", [&](Kernel& kernel) {
    const std::vector<uint8_t> copied = kernel.Run<uint8_t>(codes);
    for (int code = 0; code < 256; ++code) {
      if (std::isnan(NumberOf(GetParam(), codes[code]))) {
        EXPECT_TRUE(std::isnan(NumberOf(GetParam(), copied[code]))) << code;
      } else {
        EXPECT_EQ(copied[code], codes[code]);
      }
    }
  });
}

// A number of an 8-bit format, the middle between two of them and the neighbours of both differ
// only in the upper 18 bits and in whether the others are 0.
TEST_P(Float8Test, EveryNumberBecomesTheNearestCode) {
  std::vector<float> numbers;
  for (uint32_t upper = 0; upper < 1u << 18; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x1fffu, 0x3fffu}) {
      numbers.push_back(std::bit_cast<float>(upper << 14 | lower));
    }
  }
  std::vector<uint8_t> expected;
  for (const float number : numbers) {
    expected.push_back(std::isnan(number) ? 0x7f : CodeOf(GetParam(), number));
  }
  OnEveryTarget(
      numbers.size(), "f32", absl::StrCat(GetParam().name, "(X[i])"), [&](Kernel& kernel) {
        const std::vector<uint8_t> codes = kernel.Run<uint8_t>(numbers);
        int wrong = 0;
        for (size_t i = 0; i < numbers.size() && wrong < 10; ++i) {
          const bool right = std::isnan(numbers[i]) ? std::isnan(NumberOf(GetParam(), codes[i]))
                                                    : codes[i] == expected[i];
          if (right) continue;
          ++wrong;
          ADD_FAILURE() << numbers[i] << " is " << +codes[i] << ", expected " << +expected[i];
        }
      });
}

INSTANTIATE_TEST_SUITE_P(Formats, Float8Test, ::testing::Values(kE4M3, kE5M2),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::codegen
