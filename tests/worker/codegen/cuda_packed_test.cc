// Vectors of f16 and bf16 are computed two elements at a time where the result is the same. The
// emulation computes these pairs in float, as architectures without the instructions do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/element_bytes.h"
#include "common/lower/lower.h"
#include "tests/worker/codegen/cuda_target.h"
#include "tests/worker/codegen/emulated_program.h"
#include "tests/worker/codegen/packed_trace.h"
#include "tests/worker/codegen/run_trace.h"

namespace hone::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kElements = 512;
constexpr size_t kExactOfAnyInput[] = {0, 1, 2, 4, 5};  // outputs of PackedTrace

bool Same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

class CudaPackedTest : public testing::TestWithParam<ir::DType> {
 protected:
  void SetUp() override {
    const auto program = ReplayText(PackedTrace(GetParam(), kElements));
    ASSERT_TRUE(program.ok()) << program.status();
    workload_ = program->shared_workload();
    const auto lowered = lower::Lower(*program, CudaTarget());
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto code = Generate(*lowered, CudaTarget());
    ASSERT_TRUE(code.ok()) << code.status();
    text_ = code->bytes;
    auto programs = EmulatedPrograms::Build({*code});
    ASSERT_TRUE(programs.ok()) << programs.status() << text_;
    programs_ = *std::move(programs);
  }

  // Runs the program on inputs that `draw` makes.
  template <typename Draw>
  void Run(Draw draw) {
    inputs_.clear();
    for (int input = 0; input < 3; ++input) {
      ir::Scalars& values = inputs_.emplace_back();
      for (int64_t e = 0; e < kElements; ++e) values.push_back(draw());
    }
    const auto computed = programs_->Run(0, *workload_, inputs_);
    ASSERT_TRUE(computed.ok()) << computed.status();
    computed_ = *computed;
    const auto wanted = ir::Interpret(*workload_, inputs_);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    wanted_ = *wanted;
  }
  void ExpectSame(size_t output) const {
    for (int64_t e = 0; e < kElements; ++e) {
      ASSERT_TRUE(Same(wanted_[output][e].real(), computed_[output][e].real()))
          << "output " << output << ": " << inputs_[0][e].real() << ", " << inputs_[1][e].real()
          << ", " << inputs_[2][e].real() << " give " << computed_[output][e].real()
          << ", expected " << wanted_[output][e].real();
    }
  }

  std::shared_ptr<const ir::Workload> workload_;
  std::unique_ptr<EmulatedPrograms> programs_;
  std::string text_;
  std::vector<ir::Scalars> inputs_, wanted_, computed_;
};

TEST_P(CudaPackedTest, CallsAFunctionForEachOperation) {
  const std::string kernels = text_.substr(text_.find("extern \"C\""));
  for (const char* const operation : {"add", "sub", "mul", "fma", "max", "min"}) {
    EXPECT_THAT(kernels,
                HasSubstr(absl::StrCat("hone_", operation, "_", ir::DTypeName(GetParam()), "(")));
  }
  EXPECT_THAT(kernels, Not(HasSubstr("for (")));
}

// Any bits, so also NaN, infinities and denormals.
TEST_P(CudaPackedTest, RoundsAsTheInterpreterDoes) {
  Rng rng(7, 1);
  for (int repeat = 0; repeat < 20; ++repeat) {
    Run([&] {
      const auto bits = static_cast<uint16_t>(rng.Below(1 << 16));
      char bytes[2];
      std::memcpy(bytes, &bits, 2);
      return ir::ReadElement(GetParam(), bytes, 0);
    });
    for (const size_t output : kExactOfAnyInput) ExpectSame(output);
  }
}

TEST_P(CudaPackedTest, ChainsRoundEachStage) {
  Rng rng(8, 1);
  Run([&] { return ir::Scalar(static_cast<double>(rng.Below(33)) / 8 - 2); });
  for (size_t output = 0; output + 1 < wanted_.size(); ++output) ExpectSame(output);
  for (int64_t e = 0; e < kElements; ++e) {
    const double want = wanted_.back()[e].real();
    EXPECT_NEAR(computed_.back()[e].real(), want, std::abs(want) / 64);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaPackedTest, testing::Values(ir::DType::kF16, ir::DType::kBF16),
                         [](const auto& info) { return std::string(ir::DTypeName(info.param)); });

}  // namespace
}  // namespace hone::codegen
