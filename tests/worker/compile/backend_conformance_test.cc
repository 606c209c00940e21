// What every back end must do: generate code that computes what the interpreter of lowered programs
// computes, for all operations, reducers and random traces, and refuse the rest with Unimplemented.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/intrinsic.h"
#include "common/ir/vocabulary.h"
#include "common/ir/workload_parser.h"
#include "tests/common/schedule/random_trace.h"
#include "tests/oracles/interpreter.h"
#include "tests/status.h"
#include "tests/worker/compile/c_backend.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/builder/link.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

// A back end, and how its code becomes a shared object that this machine loads.
struct Candidate {
  const Backend* backend;
  absl::StatusOr<std::string> (*finish)(const Code& code);
  int traces;           // random ones
  double least_served;  // share of the traces for which it must have code
};

void PrintTo(const Candidate& candidate, std::ostream* out) { *out << candidate.backend->name(); }

// One line per back end.
const Candidate kCandidates[] = {
    {Backends()[0], [](const Code& code) { return builder::LinkSharedObject(code.bytes, {}); }, 300,
     0.95},
    {CBackend(), CompileC, 100, 0.9},
};

target::Target SmallTarget() {
  target::Target target = target::DetectHost();
  target.cores = 2;
  return target;
}

class BackendConformanceTest : public testing::TestWithParam<Candidate> {
 protected:
  // Returns the results of the code and those of the interpreter.
  struct Results {
    std::vector<ir::Scalars> code, interpreter;
  };
  static absl::StatusOr<Results> Run(const ir::Program& program,
                                     const std::vector<ir::Scalars>& inputs) {
    const target::Target target = SmallTarget();
    HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
    HONE_ASSIGN_OR_RETURN(const Code code, GetParam().backend->Generate(lowered, target, {}));
    HONE_ASSIGN_OR_RETURN(const std::string shared, GetParam().finish(code));
    HONE_ASSIGN_OR_RETURN(const auto compiled,
                          CompiledProgram::Load(program.shared_workload(), shared));
    Results results;
    HONE_ASSIGN_OR_RETURN(results.code, compiled->Run(absl::MakeConstSpan(inputs)));
    HONE_ASSIGN_OR_RETURN(results.interpreter,
                          lower::Interpret(lowered, program.workload(), inputs));
    return results;
  }
};

// Whether a refusal is legitimate: a limit, or something without code.
bool IsRefusal(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsInvalidArgument(status);
}

// A trace without axes of GPUs and instructions that this machine lacks.
schedule::RandomTrace DrawTrace(uint64_t seed) {
  schedule::RandomTrace random = schedule::MakeRandomTrace(seed, 16, seed % 3 == 0 ? 40 : 9);
  const target::Target host = SmallTarget();
  const size_t dropped = std::erase_if(random.steps, [&](const schedule::Step& step) {
    if (step.primitive != "tensorize") return step.primitive == "bind";
    const ir::Intrinsic* const intrinsic = ir::FindIntrinsic(step.text);
    return intrinsic->arch != host.arch || !host.HasFeature(intrinsic->feature);
  });
  if (dropped == 0) return random;
  schedule::RandomTrace kept = schedule::TakeSteps(random.workload, random.steps);
  kept.seed = seed;
  return kept;
}

TEST_P(BackendConformanceTest, RandomTracesComputeWhatTheInterpreterComputes) {
  int served = 0;
  for (int t = 0; t < GetParam().traces; ++t) {
    const schedule::RandomTrace random = DrawTrace(500000 + t);
    Rng rng(random.seed, 5);
    std::vector<ir::Scalars> inputs;
    for (const ir::Values& values : schedule::SmallIntegerInputs(*random.workload, rng)) {
      inputs.emplace_back(values.begin(), values.end());
    }
    const auto results = Run(random.program, inputs);
    if (IsRefusal(results.status())) continue;
    ASSERT_THAT(results, IsOk()) << schedule::Describe(random);
    EXPECT_EQ(results->code, results->interpreter) << schedule::Describe(random);
    ++served;
  }
  EXPECT_GE(served, GetParam().least_served * GetParam().traces);
}

// Values that functions of positive numbers, logarithms and quotients accept.
ir::Scalars Positive(ir::DType dtype, int64_t elements) {
  ir::Scalars values;
  for (int64_t i = 0; i < elements; ++i) {
    const double value =
        dtype == ir::DType::kBool ? i % 2 : 1 + i % 7 + (ir::IsFloat(dtype) ? 0.25 : 0);
    values.push_back(ir::CastTo(dtype, value));
  }
  return values;
}

TEST_P(BackendConformanceTest, EveryOperationOfEveryDType) {
  int served = 0;
  for (const ir::Function& function : ir::Functions()) {
    for (const char* const dtype :
         {"f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64", "bool"}) {
      const ir::OpInfo& info = ir::InfoOf(function.op);
      std::string call;
      if (info.infix) {
        call = absl::StrCat("A[i] ", info.name, " B[i]");
      } else if (function.op == ir::Op::kSelect) {
        call = "select(A[i] == B[i], A[i], B[i])";
      } else {
        call = absl::StrCat(info.name, "(A[i]", info.operands > 1 ? ", B[i])" : ")");
      }
      // Once as scalars and once as vectors with a tail.
      const std::string text =
          absl::StrCat("workload w\ninput A: ", dtype, "[37]\ninput B: ", dtype,
                       "[37]\noutput C[i: 37] = ", call, "\noutput D[i: 37] = ", call, "\n");
      const auto workload = ir::ParseWorkload(text);
      if (!workload.ok()) continue;  // the operation does not take this dtype
      const auto program = ReplayText(WithVectors(text, {"D"}, 16));
      ASSERT_THAT(program, IsOk()) << text;
      const ir::DType type = workload->tensors[0].dtype;
      ir::Scalars second = Positive(type, 37);
      std::rotate(second.begin(), second.begin() + 5, second.end());
      const auto results = Run(*program, {Positive(type, 37), second});
      if (IsRefusal(results.status())) continue;
      ASSERT_THAT(results, IsOk()) << text;
      ++served;
      const double unit = type == ir::DType::kBF16  ? 0x1p-7
                          : type == ir::DType::kF16 ? 0x1p-10
                          : type == ir::DType::kF32 ? 0x1p-21
                                                    : 0x1p-50;
      for (size_t o = 0; o < 2; ++o) {
        for (size_t e = 0; e < 37; ++e) {
          const double want = results->interpreter[o][e].real(), got = results->code[o][e].real();
          ASSERT_NEAR(got, want, ir::IsFloat(type) ? unit * std::fabs(want) : 0)
              << "element " << e << " of output " << o << "\n"
              << text;
        }
      }
    }
  }
  EXPECT_GE(served, 80);
}

TEST_P(BackendConformanceTest, EveryReducer) {
  const char* const kStages[] = {
      "output C[i: 5] = sum(k: 19) A[i, k]",
      "output C[i: 5] = prod(k: 3) A[i, k]",
      "output C[i: 5] = min(k: 19) A[i, k]",
      "output C[i: 5] = max(k: 19 where 0 <= k - i < 9) A[i, k]",
      "output (C, I)[i: 5] = argmax(k: 19) (A[i, k], index(k))",
      "output (C, I)[i: 5] = argmin(k: 19) (A[i, k], index(k))",
      "output (C, D)[i: 5] = online_softmax(k: 19) (A[i, k], 1.0)",
  };
  for (const char* const stage : kStages) {
    const std::string text =
        absl::StrCat("workload w\ninput A: f32[5, 19]\n", stage, "\ntrace 1\n");
    const auto program = ReplayText(text);
    ASSERT_THAT(program, IsOk()) << text;
    const auto results = Run(*program, {Positive(ir::DType::kF32, 95)});
    ASSERT_THAT(results, IsOk()) << text;
    for (size_t o = 0; o < results->code.size(); ++o) {
      for (size_t e = 0; e < results->code[o].size(); ++e) {
        const double want = results->interpreter[o][e].real();
        EXPECT_NEAR(results->code[o][e].real(), want, 1e-5 * std::fabs(want)) << text;
      }
    }
  }
}

// Constants that are packed ahead of time, a buffer that threads share, and for each of them one on
// its stack and one that is too large for that.
constexpr char kMemories[] = R"(workload memories
input A: f32[4, 64]
input W: f32[64, 16384] constant
H[i: 4, j: 64] = A[i, j] * 2.0
S[i: 4, j: 64] = H[i, j] + H[i, 63 - j]
L[i: 4, j: 16384] = sum(k: 64) S[i, k] * W[k, j]
output C[i: 4, j: 16384] = L[i, j] + L[i, 16383 - j]
trace 1
b0 = block("L")
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "k, j -> j / 16, k, j % 16")
b2 = block("C")
l0, l1 = loops(b2)
compute_at(b0, l0)
b3 = block("S")
compute_at(b3, l0)
parallel(l0)
)";

TEST_P(BackendConformanceTest, EveryKindOfMemory) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(kMemories));
  HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, SmallTarget()));
  using Kind = lower::Storage::Kind;
  for (const Kind kind : {Kind::kPacked, Kind::kWorkspace, Kind::kThread, Kind::kStack}) {
    EXPECT_TRUE(std::any_of(lowered.storage.begin(), lowered.storage.end(),
                            [&](const lower::Storage& storage) { return storage.kind == kind; }))
        << lowered.ToText();
  }
  std::vector<ir::Scalars> inputs(2);
  for (int i = 0; i < 4 * 64; ++i) inputs[0].push_back(ir::Scalar(i % 5 - 2.0));
  for (int i = 0; i < 64 * 16384; ++i) inputs[1].push_back(ir::Scalar(i % 3 - 1.0));
  HONE_ASSERT_OK_AND_ASSIGN(const auto results, Run(program, inputs));
  EXPECT_EQ(results.code, results.interpreter);
}

TEST_P(BackendConformanceTest, EqualProgramsGiveEqualCode) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(kMemories));
  HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, SmallTarget()));
  HONE_ASSERT_OK_AND_ASSIGN(const auto once,
                            GetParam().backend->Generate(lowered, SmallTarget(), {}));
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, GetParam().backend->Generate(lowered, SmallTarget(),
                                                                           {.keep_source = true}));
  EXPECT_EQ(once.bytes, again.bytes);
  EXPECT_FALSE(again.source.empty());
}

TEST_P(BackendConformanceTest, RefusesWhatHasNoCode) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto program,
      ReplayText("workload w\ninput A: f32[8]\noutput C[i: 8] = A[i]\ntrace 1\nb0 = block(\"C\")\n"
                 "l0 = loops(b0)\nbind(l0, \"blockIdx.x\")\n"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(program, SmallTarget()));
  EXPECT_THAT(GetParam().backend->Generate(lowered, SmallTarget(), {}),
              StatusIs(absl::StatusCode::kUnimplemented));
  target::Target gpu;
  gpu.kind = target::Kind::kCuda;
  EXPECT_FALSE(GetParam().backend->Serves(gpu));
}

INSTANTIATE_TEST_SUITE_P(All, BackendConformanceTest, testing::ValuesIn(kCandidates),
                         [](const auto& info) { return std::string(info.param.backend->name()); });

// Back ends for GPUs print C, which tests of the printer and of devices check.
TEST(BackendRegistryTest, EveryBackendIsTested) {
  for (const Backend* const backend : Backends()) {
    if (!backend->Serves(SmallTarget())) continue;
    const auto tests = [&](const Candidate& candidate) { return candidate.backend == backend; };
    EXPECT_TRUE(std::any_of(std::begin(kCandidates), std::end(kCandidates), tests))
        << backend->name();
  }
}

}  // namespace
}  // namespace hone::codegen
