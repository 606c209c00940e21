// The lowered program of any legal trace keeps the verifier's rules and computes the workload.
//
// HONE_LOWERED_TRACES: number of traces over all shards. HONE_SEED: first seed.

#include "tests/common/schedule/random_trace.h"

#include <gtest/gtest.h>

#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/interpreter.h"
#include "tests/common/schedule/random_workload.h"
#include "tests/common/schedule/seed_range.h"
#include "tests/common/schedule/shrink.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/verifier.h"
#include "tests/worker/compile/lower/random_strides.h"
#include "worker/compile/lower/lower.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {
namespace {

constexpr int kShards = 4;
constexpr int64_t kTraces = 20000;

target::Target SmallTarget() {
  target::Target target;
  target.cores = 2;
  return target;
}

struct Example {
  std::vector<ir::Scalars> inputs, outputs;
};

absl::StatusOr<Example> MakeExample(const schedule::RandomTrace& random) {
  Rng rng(random.seed, 4);
  Example example;
  for (const ir::Values& values : schedule::SmallIntegerInputs(*random.workload, rng)) {
    example.inputs.emplace_back(values.begin(), values.end());
  }
  HONE_ASSIGN_OR_RETURN(example.outputs, ir::Interpret(*random.workload, example.inputs));
  return example;
}

std::string Difference(const Example& example,
                       const absl::StatusOr<std::vector<ir::Scalars>>& actual) {
  if (!actual.ok()) return std::string(actual.status().message());
  for (size_t t = 0; t < actual->size(); ++t) {
    for (size_t e = 0; e < (*actual)[t].size(); ++e) {
      const ir::Scalar want = example.outputs[t][e], got = (*actual)[t][e];
      if (want == got) continue;
      return absl::StrCat("element ", e, " of output ", t, " is ", got.ToText(), ", expected ",
                          want.ToText());
    }
  }
  return "";
}

// Returns "" or a description of the problem.
std::string Problem(const schedule::RandomTrace& random) {
  // Some kernels read and write slices of larger tensors.
  Rng rng(random.seed, 6);
  const absl::StatusOr<LoweredProgram> lowered =
      Lower(random.program, SmallTarget(),
            random.seed % 3 == 1 ? RandomStrides(*random.workload, rng) : ArgumentStrides());
  // The trace would store sums of f16 and bf16 before they are complete.
  if (absl::StrContains(lowered.status().message(), "partial sums of")) return "";
  if (!lowered.ok()) return std::string(lowered.status().message());
  if (const absl::Status verified = Verify(*lowered); !verified.ok()) {
    return std::string(verified.message());
  }
  const absl::StatusOr<Example> example = MakeExample(random);
  if (!example.ok()) return std::string(example.status().message());
  return Difference(*example, Interpret(*lowered, *random.workload, example->inputs));
}

// The first pass whose result computes something else, with that result.
std::string FaultyPass(const schedule::RandomTrace& random) {
  const absl::StatusOr<Example> example = MakeExample(random);
  if (!example.ok()) return "";
  ir::Program program = random.program;
  const std::pair<const char*, ir::Program (*)(const ir::Program&)> before[] = {
      {"RemoveDeadBlocks", RemoveDeadBlocks}, {"CompactBuffers", CompactBuffers}};
  for (const auto& [name, pass] : before) {
    program = pass(program);
    const std::string difference = Difference(*example, ir::Interpret(program, example->inputs));
    if (!difference.empty()) return absl::StrCat(name, ": ", difference, "\n", program.ToText());
  }
  LoweredProgram lowered = BuildTree(program);
  const auto difference_now = [&] {
    return Difference(*example, Interpret(lowered, *random.workload, example->inputs));
  };
  if (const std::string difference = difference_now(); !difference.empty()) {
    return absl::StrCat("BuildTree: ", difference, "\n", lowered.ToText());
  }
  for (const Pass& pass : Passes()) {
    const absl::Status status = pass.run(lowered);
    const std::string difference = status.ok() ? difference_now() : std::string(status.message());
    if (!difference.empty()) {
      return absl::StrCat(pass.name, ": ", difference, "\n", lowered.ToText());
    }
  }
  return "AssignStorage";
}

// The CPU's passes do not lower GPU axes.
schedule::RandomTrace WithoutAxes(schedule::RandomTrace random) {
  const auto binds = [](const schedule::Step& step) { return step.primitive == "bind"; };
  if (std::erase_if(random.steps, binds) == 0) return random;
  schedule::RandomTrace kept = schedule::TakeSteps(random.workload, random.steps);
  kept.seed = random.seed;
  kept.drawn = random.drawn;
  return kept;
}

class LoweredRandomTraces : public testing::TestWithParam<int> {};

TEST_P(LoweredRandomTraces, ComputeTheWorkload) {
  const schedule::SeedRange range =
      schedule::SeedRange::FromEnvironment("HONE_LOWERED_TRACES", kTraces)
          .Shard(GetParam(), kShards);
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    const int attempts = 8 + static_cast<int>(seed % 4) * 8;
    schedule::RandomTrace random =
        WithoutAxes(schedule::MakeRandomTrace(static_cast<uint64_t>(seed), attempts));
    if (Problem(random).empty()) continue;
    random = schedule::Shrink(std::move(random), [](const schedule::RandomTrace& candidate) {
      return !Problem(candidate).empty();
    });
    FAIL() << Problem(random) << "\n"
           << schedule::Describe(random) << "# the first faulty pass: " << FaultyPass(random)
           << schedule::RepeatHint(seed, "HONE_LOWERED_TRACES");
  }
  std::cout << range.count << " traces from seed " << range.first << " on\n";
}

INSTANTIATE_TEST_SUITE_P(Shards, LoweredRandomTraces, testing::Range(0, kShards));

}  // namespace
}  // namespace hone::lower
