// Compiled code agrees with the interpreter after any legal primitives.
//
// HONE_COMPILED_TRACES: number of traces over all shards. HONE_SEED: first seed.

#include "tests/common/schedule/random_trace.h"

#include <gtest/gtest.h>

#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/ir/intrinsic.h"
#include "common/lower/lower.h"
#include "tests/common/lower/random_strides.h"
#include "tests/common/schedule/random_workload.h"
#include "tests/common/schedule/seed_range.h"
#include "tests/common/schedule/shrink.h"
#include "tests/worker/codegen/compiled_program.h"

namespace hone::codegen {
namespace {

constexpr int kShards = 4;
constexpr int64_t kTraces = 2000;

target::Target SmallTarget() {
  target::Target target = target::DetectHost();
  target.cores = 2;
  return target;
}

// Returns "" or a description of the problem.
std::string Problem(const schedule::RandomTrace& random) {
  Rng rng(random.seed, 3);
  const std::vector<ir::Values> inputs = schedule::SmallIntegerInputs(*random.workload, rng);
  const auto expected = ir::Interpret(*random.workload, inputs);
  if (!expected.ok()) return std::string(expected.status().message());
  // Some kernels read and write slices of larger tensors.
  const lower::ArgumentStrides strides =
      random.seed % 3 == 1 ? lower::RandomStrides(*random.workload, rng) : lower::ArgumentStrides();
  const auto compiled = CompiledProgram::Load(random.program, SmallTarget(), strides);
  // A slice need not have the layout that an instruction reads.
  if (!strides.empty() &&
      absl::StrContains(compiled.status().message(), "the layout that it needs"))
    return "";
  // The code is larger than the limit for candidates. This is not a fault.
  if (absl::StrContains(compiled.status().message(), "the unrolled code")) return "";
  // The trace would store sums of f16 and bf16 before they are complete.
  if (absl::StrContains(compiled.status().message(), "partial sums of")) return "";
  if (!compiled.ok()) return std::string(compiled.status().message());
  const auto actual = (*compiled)->Run(inputs);
  if (!actual.ok()) return std::string(actual.status().message());
  for (size_t t = 0; t < expected->size(); ++t) {
    for (size_t e = 0; e < (*expected)[t].size(); ++e) {
      const double want = (*expected)[t][e], got = (*actual)[t][e];
      if (want != got)
        return absl::StrCat("element ", e, " of output ", t, " is ", got, ", expected ", want);
    }
  }
  return "";
}

// CPUs have no code for GPU axes, and this CPU may lack an instruction.
bool HasCode(const schedule::Step& step) {
  if (step.primitive == "bind") return false;
  if (step.primitive != "tensorize") return true;
  static const target::Target target = SmallTarget();
  const ir::Intrinsic& intrinsic = *ir::FindIntrinsic(step.text);
  return intrinsic.arch == target.arch && target.HasFeature(std::string(intrinsic.feature));
}
schedule::RandomTrace WithCode(schedule::RandomTrace random) {
  if (std::erase_if(random.steps, [](const schedule::Step& step) { return !HasCode(step); }) == 0)
    return random;
  schedule::RandomTrace kept = schedule::TakeSteps(random.workload, random.steps);
  kept.seed = random.seed;
  kept.drawn = random.drawn;
  return kept;
}

class CompiledRandomTraces : public testing::TestWithParam<int> {};

TEST_P(CompiledRandomTraces, MatchTheWorkload) {
  const schedule::SeedRange range =
      schedule::SeedRange::FromEnvironment("HONE_COMPILED_TRACES", kTraces)
          .Shard(GetParam(), kShards);
  int tensorized = 0;
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    // Some extents exceed a vector, so that tails and masks occur.
    schedule::RandomTrace random =
        WithCode(schedule::MakeRandomTrace(seed, 16, seed % 3 == 0 ? 40 : 9));
    for (const schedule::Step& step : random.steps) tensorized += step.primitive == "tensorize";
    if (Problem(random).empty()) continue;
    random = schedule::Shrink(
        std::move(random), [](const schedule::RandomTrace& r) { return !Problem(r).empty(); },
        /*max_tries=*/1000);
    const auto lowered = lower::Lower(random.program, SmallTarget());
    FAIL() << Problem(random) << "\n"
           << schedule::Describe(random) << "# lowered\n"
           << (lowered.ok() ? lowered->ToText() : std::string(lowered.status().message()))
           << schedule::RepeatHint(seed, "HONE_COMPILED_TRACES");
  }
  std::cout << range.count << " traces from seed " << range.first << " on, " << tensorized
            << " instructions\n";
}

INSTANTIATE_TEST_SUITE_P(Shards, CompiledRandomTraces, testing::Range(0, kShards));

}  // namespace
}  // namespace hone::codegen
