// Vectors of f16 and bf16 are computed two elements at a time where the result is the same. The
// emulation computes these pairs in float, as architectures without the instructions do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/base/rng.h"
#include "common/ir/dtype.h"
#include "tests/common/schedule/seed_range.h"
#include "tests/status.h"
#include "tests/worker/compile/cuda_target.h"
#include "tests/worker/compile/emulated_program.h"
#include "tests/worker/compile/packed_trace.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/lower/lower.h"

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
    HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(PackedTrace(GetParam(), kElements)));
    workload_ = program.shared_workload();
    HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, CudaTarget()));
    HONE_ASSERT_OK_AND_ASSIGN(const auto code, Generate(lowered, CudaTarget()));
    text_ = code.bytes;
    auto programs = EmulatedPrograms::Build({code});
    ASSERT_THAT(programs, IsOk()) << text_;
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
    HONE_ASSERT_OK_AND_ASSIGN(computed_, programs_->Run(0, *workload_, inputs_));
    HONE_ASSERT_OK_AND_ASSIGN(wanted_, ir::Interpret(*workload_, inputs_));
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

// Random stages over f16 and bf16, some of them inlined, with vectors of any length. Some loads are
// not aligned, and some are the same for all elements of a vector.
class RandomStages {
 public:
  explicit RandomStages(uint64_t seed) : rng_(seed, 2) {}

  std::string Trace() {
    const char* const types[] = {"f16", "bf16"};
    type_ = types[rng_.Below(2)];
    const int64_t lanes = int64_t{2} << rng_.Below(4), columns = lanes * (2 + Below(3));
    std::string text = "workload random\n", trace = "trace 1\n";
    for (const char* const input : {"A", "B", "C"}) {
      absl::StrAppend(&text, "input ", input, ": ", type_, "[3, ", columns + 8, "]\n");
      readable_.push_back(input);
    }
    const int64_t stages = 1 + Below(3);  // more would exceed what f32 holds exactly
    for (int64_t s = 0; s < stages; ++s) {
      const std::string name = absl::StrCat("S", s);
      absl::StrAppend(&text, s + 1 == stages ? "output " : "", name, "[i: 3, j: ", columns,
                      "] = ", Operation(s == 0 ? "A[i, j]" : absl::StrCat("S", s - 1, "[i, j]")),
                      "\n");
      if (s + 1 < stages) {
        absl::StrAppend(&trace, "b", s, " = block(\"", name, "\")\ncompute_inline(b", s, ")\n");
        computed_.push_back(name);
      }
    }
    return absl::StrCat(text, trace, "b9 = block(\"S", stages - 1,
                        "\")\nl0, l1 = loops(b9)\nl2, l3 = split(l1, 0, ", lanes,
                        ")\nbind(l0, \"blockIdx.x\")\nbind(l2, \"threadIdx.x\")\n"
                        "vectorize(l3)\n");
  }

 private:
  int64_t Below(uint64_t number) { return static_cast<int64_t>(rng_.Below(number)); }

  // An operation on `first`, which sometimes has another operation as an operand.
  std::string Operation(const std::string& first) {
    const char* const forms[] = {"$0 + $1",     "$0 - $1",     "$0 * $1",     "$0 * $1 + $2",
                                 "max($0, $1)", "min($1, $0)", "$1 + $0 * $2"};
    std::string second = Operand();
    const std::string third = Operand();
    if (Below(6) == 0) second = absl::StrCat("(", second, " - ", third, ")");
    return absl::Substitute(forms[Below(std::size(forms))], first, second, third);
  }
  std::string Operand() {
    const int64_t kind = Below(6);
    if (kind == 0) return absl::StrCat(type_, "(", Below(3), ".0)");
    if (kind <= 2 && !computed_.empty()) {
      return absl::StrCat(computed_[Below(computed_.size())], "[i, j]");
    }
    const std::string& input = readable_[Below(readable_.size())];
    if (kind == 3) return absl::StrCat(input, "[i, ", Below(8), "]");
    return absl::StrCat(input, "[i, j", kind == 4 ? absl::StrCat(" + ", Below(8)) : "", "]");
  }

  Rng rng_;
  std::string type_;
  std::vector<std::string> readable_, computed_;
};

// HONE_PACKED_TRACES: number of programs. HONE_SEED: first seed.
TEST(CudaPackedRandomTest, ComputesTheWorkload) {
  const schedule::SeedRange range = schedule::SeedRange::FromEnvironment("HONE_PACKED_TRACES", 60);
  std::vector<std::shared_ptr<const ir::Workload>> workloads;
  std::vector<Code> codes;
  int packed = 0;
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    const std::string trace = RandomStages(static_cast<uint64_t>(seed)).Trace();
    const auto program = ReplayText(trace);
    ASSERT_THAT(program, IsOk()) << trace;
    HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(*program, CudaTarget()));
    HONE_ASSERT_OK_AND_ASSIGN(Code code, Generate(lowered, CudaTarget()));
    packed += absl::StrContains(code.bytes, "hone_make_pairs") ? 1 : 0;
    workloads.push_back(program->shared_workload());
    codes.push_back(std::move(code));
  }
  EXPECT_GE(packed, range.count / 2);
  HONE_ASSERT_OK_AND_ASSIGN(const auto programs, EmulatedPrograms::Build(std::move(codes)));
  for (size_t p = 0; p < workloads.size(); ++p) {
    const ir::Workload& workload = *workloads[p];
    Rng rng(p, 3);
    std::vector<ir::Scalars> inputs;
    for (const ir::BufferId id : workload.Inputs()) {
      ir::Scalars& values = inputs.emplace_back();
      for (int64_t e = 0; e < ir::ElementsOf(workload.tensors[id].shape); ++e) {
        values.emplace_back(static_cast<double>(rng.Below(5)) - 2);
      }
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto wanted, ir::Interpret(workload, inputs));
    HONE_ASSERT_OK_AND_ASSIGN(const auto computed, programs->Run(p, workload, inputs));
    for (size_t e = 0; e < wanted[0].size(); ++e) {
      ASSERT_EQ(wanted[0][e], computed[0][e])
          << "element " << e << workload.ToText() << programs->code(p).bytes
          << schedule::RepeatHint(range.first + static_cast<int64_t>(p), "HONE_PACKED_TRACES");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaPackedTest, testing::Values(ir::DType::kF16, ir::DType::kBF16),
                         [](const auto& info) { return std::string(ir::DTypeName(info.param)); });

}  // namespace
}  // namespace hone::codegen
