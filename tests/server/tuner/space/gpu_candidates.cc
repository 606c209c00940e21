#include "tests/server/tuner/space/gpu_candidates.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "tests/oracles/interpreter.h"
#include "tests/server/tuner/space/exact_values.h"
#include "tests/server/tuner/space/gpu_program.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"
#include "worker/compile/lower/lower.h"

namespace hone::space {
namespace {

std::vector<target::Target> Targets() {
  return {target::TargetByName("generic/opencl").value(),
          target::TargetByName("arm/mali-g610").value(), Sm80()};
}

// Returns what exceeds the limits of the target in a lowered program, or "".
std::string BeyondLimits(const lower::LoweredProgram& lowered, const target::Target& target) {
  for (const lower::LoweredKernel& kernel : lowered.kernels) {
    const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    if (threads > target.gpu.max_threads) return absl::StrCat(threads, " threads");
    if (kernel.shared_bytes > target.gpu.shared_bytes)
      return absl::StrCat(kernel.shared_bytes, " bytes of shared memory");
    if (std::max(kernel.grid[1], kernel.grid[2]) > 65535) return "a grid too large";
  }
  return "";
}

// Lowers a candidate and runs its threads in two orders. Returns what is wrong, or "".
std::string ProblemOfLowered(const ir::Program& program, const target::Target& target,
                             const std::vector<ir::Scalars>& inputs,
                             const std::vector<ir::Scalars>& wanted) {
  const auto lowered = lower::Lower(program, target);
  if (!lowered.ok()) return lowered.status().ToString();
  if (const std::string beyond = BeyondLimits(*lowered, target); !beyond.empty()) return beyond;
  for (const lower::ThreadOrder order :
       {lower::ThreadOrder::kBackward, lower::ThreadOrder::kShuffled}) {
    // A rewrite gives the tensors other numbers.
    const auto computed =
        lower::Interpret(*lowered, program.workload(), inputs, int64_t{1} << 32, order);
    if (!computed.ok()) return absl::StrCat(computed.status().ToString(), "\n", lowered->ToText());
    if (*computed != wanted) return "the results differ";
  }
  return "";
}

}  // namespace

void ExpectRightResults(const char* text, const MakeGpuSpaces& make) {
  constexpr int kCandidates = 4;
  const auto workload = MakeWorkload(text);
  const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
  const std::vector<ir::Values> wanted = ir::Interpret(*workload, inputs).value();
  const std::vector<ir::Scalars> exact_inputs = ExactValues(*workload, workload->Inputs(), inputs);
  const std::vector<ir::Scalars> exact = ExactValues(*workload, workload->Outputs(), wanted);
  for (const target::Target& target : Targets()) {
    for (const auto& space : make(workload, target)) {
      std::vector<int64_t> decisions;
      for (uint64_t i = 0; i < kCandidates; ++i) {
        Rng rng(11, i);
        auto drawn = i % 2 == 0 ? space->Sample(rng) : space->Mutate(decisions, rng);
        if (i % 2 == 1 && absl::IsResourceExhausted(drawn.status())) continue;
        ASSERT_THAT(drawn, IsOk()) << space->name();
        decisions = *drawn;
        auto program = space->Replay(decisions);
        if (!program.ok()) continue;  // ExpectFewInvalid counts these
        ASSERT_THAT(CheckGpuProgram(*program, target), IsOk()) << program->ToText();
        auto computed = ir::Interpret(*program, inputs);
        ASSERT_THAT(computed, IsOk()) << program->ToText();
        ASSERT_EQ(*computed, wanted)
            << schedule::TraceFileText(*space->workload(), space->trace(), decisions)
            << program->ToText();
        ASSERT_EQ(ProblemOfLowered(*program, target, exact_inputs, exact), "")
            << target.cpu << " "
            << schedule::TraceFileText(*space->workload(), space->trace(), decisions)
            << program->ToText();
      }
    }
  }
}

void ExpectFewInvalid(const char* text, const MakeGpuSpaces& make, int candidates) {
  const auto workload = MakeWorkload(text);
  for (const target::Target& target : Targets()) {
    int tried = 0, invalid = 0;
    std::map<std::string, int> failures;
    for (const auto& space : make(workload, target)) {
      for (int i = 0; i < candidates; ++i) {
        Rng rng(13, i);
        const auto drawn = space->Sample(rng);
        ASSERT_THAT(drawn, IsOk()) << target.cpu << " " << space->name();
        ASSERT_TRUE(space->IsLegal(*drawn)) << space->name();
        const auto program = space->Replay(*drawn);
        ++tried;
        if (!program.ok()) {
          ++invalid;
          ++failures[absl::StrCat(space->name(), ": ", program.status().message())];
          continue;
        }
        ASSERT_THAT(CheckGpuProgram(*program, target), IsOk())
            << target.cpu << " " << space->name() << program->ToText();
        const auto lowered = lower::Lower(*program, target);
        ASSERT_THAT(lowered, IsOk()) << program->ToText();
        ASSERT_EQ(BeyondLimits(*lowered, target), "") << target.cpu << " " << program->ToText();
      }
    }
    EXPECT_LE(invalid * 50, tried) << target.cpu << ": " << failures.begin()->first;
  }
}

std::string GpuTestName(const testing::TestParamInfo<const char*>& info) {
  std::string name = absl::StrCat(info.index, "_");
  for (char c : std::string(info.param).substr(0, 40)) {
    if (c == '\n') break;
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name;
}

}  // namespace hone::space
