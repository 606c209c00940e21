// Compiled code computes what the interpreter says, whatever legal primitives did to the program.
//
// HONE_COMPILED_TRACES: how many (default 400). HONE_SEED: where the seeds begin (default 1).

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/lower/lower.h"
#include "tests/common/schedule/random_trace.h"
#include "tests/common/schedule/random_workload.h"
#include "tests/worker/codegen/compiled_program.h"

namespace hone::codegen {
namespace {

int64_t FromEnv(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : fallback;
}

target::Target SmallTarget() {
  target::Target target = target::DetectHost();
  target.cores = 2;
  return target;
}

// "" or what is wrong.
std::string Problem(const schedule::RandomTrace& random) {
  Rng rng(random.seed, 3);
  const std::vector<ir::Values> inputs = schedule::SmallIntegerInputs(*random.workload, rng);
  const auto expected = ir::Interpret(*random.workload, inputs);
  if (!expected.ok()) return std::string(expected.status().message());
  const auto compiled = CompiledProgram::Load(random.program, SmallTarget());
  if (!compiled.ok()) return std::string(compiled.status().message());
  const auto actual = (*compiled)->Run(inputs);
  if (!actual.ok()) return std::string(actual.status().message());
  for (size_t t = 0; t < expected->size(); ++t) {
    for (size_t e = 0; e < (*expected)[t].size(); ++e) {
      const double want = (*expected)[t][e], got = (*actual)[t][e];
      if (want != got) return absl::StrCat("element ", e, " of output ", t, " is ", got, ", expected ", want);
    }
  }
  return "";
}

// CPUs have no code for GPU axes.
schedule::RandomTrace WithoutBinds(schedule::RandomTrace random) {
  const auto binds = std::erase_if(random.steps, [](const schedule::Step& step) { return step.primitive == "bind"; });
  if (binds == 0) return random;
  const uint64_t seed = random.seed;
  random = schedule::TakeSteps(random.workload, random.steps);
  random.seed = seed;
  return random;
}

TEST(CompiledRandomTraces, ComputeWhatTheWorkloadComputes) {
  const int64_t count = FromEnv("HONE_COMPILED_TRACES", 400), first = FromEnv("HONE_SEED", 1);
  std::cout << "seeds " << first << " to " << first + count - 1 << "\n";
  for (int64_t seed = first; seed < first + count; ++seed) {
    // Extents beyond a vector, so that tails and masks occur.
    schedule::RandomTrace random = WithoutBinds(schedule::MakeRandomTrace(seed, 16, seed % 3 == 0 ? 40 : 9));
    if (Problem(random).empty()) continue;
    random = schedule::Shrink(std::move(random), [](const schedule::RandomTrace& r) { return !Problem(r).empty(); });
    const auto lowered = lower::Lower(random.program, SmallTarget());
    FAIL() << "seed " << seed << ": " << Problem(random) << "\n"
           << schedule::Describe(random) << "\n" << (lowered.ok() ? lowered->ToText() : std::string(lowered.status().message()));
  }
}

}  // namespace
}  // namespace hone::codegen
