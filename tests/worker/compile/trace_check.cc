#include "tests/worker/compile/trace_check.h"

#include <gtest/gtest.h>

#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/intrinsic.h"
#include "tests/common/schedule/random_workload.h"
#include "tests/common/schedule/shrink.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/lower/random_strides.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

// CPUs have no code for GPU axes, and the target may lack an instruction.
bool HasCode(const schedule::Step& step, const target::Target& target) {
  if (step.primitive == "bind") return false;
  if (step.primitive != "tensorize") return true;
  const ir::Intrinsic& intrinsic = *ir::FindIntrinsic(step.text);
  return intrinsic.arch == target.arch && target.HasFeature(std::string(intrinsic.feature));
}

schedule::RandomTrace WithCode(schedule::RandomTrace random, const target::Target& target) {
  if (std::erase_if(random.steps,
                    [&](const schedule::Step& step) { return !HasCode(step, target); }) == 0)
    return random;
  schedule::RandomTrace kept = schedule::TakeSteps(random.workload, random.steps);
  kept.seed = random.seed;
  kept.drawn = random.drawn;
  return kept;
}

}  // namespace

std::string TraceProblem(const schedule::RandomTrace& random, const target::Target& target) {
  Rng rng(random.seed, 3);
  const std::vector<ir::Values> inputs = schedule::SmallIntegerInputs(*random.workload, rng);
  const auto expected = ir::Interpret(*random.workload, inputs);
  if (!expected.ok()) return std::string(expected.status().message());
  // Some kernels read and write slices of larger tensors.
  const lower::ArgumentStrides strides =
      random.seed % 3 == 1 ? lower::RandomStrides(*random.workload, rng) : lower::ArgumentStrides();
  const auto compiled = CompiledProgram::Load(random.program, target, strides);
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

void ExpectTracesMatch(const schedule::SeedRange& range, const target::Target& target,
                       const char* count_name) {
  int tensorized = 0;
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    // Some extents exceed a vector, so that tails and masks occur.
    schedule::RandomTrace random =
        WithCode(schedule::MakeRandomTrace(seed, 16, seed % 3 == 0 ? 40 : 9), target);
    for (const schedule::Step& step : random.steps) tensorized += step.primitive == "tensorize";
    if (TraceProblem(random, target).empty()) continue;
    random = schedule::Shrink(
        std::move(random),
        [&](const schedule::RandomTrace& r) { return !TraceProblem(r, target).empty(); },
        /*max_tries=*/1000);
    const auto lowered = lower::Lower(random.program, target);
    FAIL() << TraceProblem(random, target) << "\n"
           << schedule::Describe(random) << "# lowered\n"
           << (lowered.ok() ? lowered->ToText() : std::string(lowered.status().message()))
           << schedule::RepeatHint(seed, count_name);
  }
  std::cout << range.count << " traces from seed " << range.first << " on, " << tensorized
            << " instructions\n";
}

}  // namespace hone::codegen
