#include "tests/common/schedule/random_trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "tests/common/schedule/random_step.h"

namespace hone::schedule {
namespace {

// Takes a step if it is legal.
void Try(RandomTrace& random, TraceBuilder& builder, const Step& step) {
  const Digest before = random.program.StructuralDigest();
  const absl::Status status = TakeStep(step, random.program, builder, random.decisions);
  if (status.ok()) {
    random.steps.push_back(step);
    return;
  }
  ++random.refused;
  if (before != random.program.StructuralDigest() && random.refusals.ok()) {
    random.refusals = absl::InternalError(
        absl::StrCat(step.primitive, " changed the program and then refused: ", status.message()));
  }
}

}  // namespace

RandomTrace TakeSteps(std::shared_ptr<const ir::Workload> workload,
                      const std::vector<Step>& steps) {
  RandomTrace random{.workload = workload, .program = ir::Program::FromWorkload(workload)};
  TraceBuilder builder;
  for (const Step& step : steps) Try(random, builder, step);
  random.trace = std::move(builder).Build();
  return random;
}

RandomTrace MakeRandomTrace(std::shared_ptr<const ir::Workload> workload, uint64_t seed,
                            int attempts) {
  Rng rng(seed, 1);
  RandomTrace random{
      .seed = seed, .workload = workload, .program = ir::Program::FromWorkload(workload)};
  TraceBuilder builder;
  for (int i = 0; i < attempts; ++i) {
    for (const Step& step : RandomSteps(rng, random.program)) Try(random, builder, step);
  }
  random.trace = std::move(builder).Build();
  return random;
}

RandomTrace MakeRandomTrace(uint64_t seed, int attempts, int64_t max_extent) {
  Rng rng(seed, 0);
  const RandomWorkload drawn = DrawWorkload(rng, max_extent);
  RandomTrace random = MakeRandomTrace(drawn.Parsed(), seed, attempts);
  random.drawn = drawn;
  return random;
}

std::string Describe(const RandomTrace& random) {
  const std::string program = absl::StrReplaceAll(random.program.ToText(), {{"\n", "\n# "}});
  return absl::StrCat("# seed ", random.seed, "\n",
                      TraceFileText(*random.workload, random.trace, random.decisions),
                      "# gives\n# ", absl::StripSuffix(program, "# "));
}

}  // namespace hone::schedule
