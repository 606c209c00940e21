#include "server/space/generate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "server/space/algorithm.h"
#include "server/space/plain_nest.h"
#include "server/space/rule.h"

namespace hone::space {
namespace {

constexpr int kMaxMinor = 1;
constexpr size_t kMaxSketches = 256;  // that rules may reach on the way

// A block register and a nest per stage.
void AddNests(const ir::Workload& workload, Sketch& sketch) {
  for (const ir::Stage& stage : workload.stages) {
    const std::string& name = workload.tensors[stage.tensors[0]].name;
    sketch.nests.push_back(
        {.name = name, .block = sketch.trace.Add("block", {schedule::Text(name)})[0]});
  }
}

Sketch InitialSketch(const ir::Workload& workload) {
  Sketch sketch;
  AddNests(workload, sketch);
  return sketch;
}

// The same for another algorithm, which has its own stages.
Sketch InitialSketch(const Algorithm& algorithm) {
  Sketch sketch;
  std::vector<schedule::Operand> operands = {schedule::Text(algorithm.rewrite),
                                             schedule::Text(algorithm.stage)};
  for (const int64_t number : algorithm.numbers) operands.push_back(Literal(number));
  sketch.trace.Add("rewrite", std::move(operands));
  AddNests(algorithm.rewritten, sketch);
  sketch.name.push_back(algorithm.name);
  sketch.minor = kMaxMinor;  // its main alternatives alone
  return sketch;
}

std::vector<Sketch> ApplyRules(const RuleContext& context, Sketch initial) {
  std::vector<Sketch> sketches;
  sketches.push_back(std::move(initial));
  for (const Rule& rule : Rules()) {
    for (size_t nest = 0;; ++nest) {
      // Rules add nests for the blocks that they create.
      const bool any = std::any_of(sketches.begin(), sketches.end(),
                                   [&](const Sketch& s) { return nest < s.nests.size(); });
      if (!any) break;
      std::vector<Sketch> next;
      for (Sketch& sketch : sketches) {
        std::vector<Sketch> alternatives;
        if (nest < sketch.nests.size())
          alternatives = rule.apply(context, sketch, static_cast<int>(nest));
        if (alternatives.empty()) alternatives.push_back(std::move(sketch));
        for (Sketch& alternative : alternatives) {
          if (alternative.minor <= kMaxMinor && next.size() < kMaxSketches)
            next.push_back(std::move(alternative));
        }
      }
      sketches = std::move(next);
    }
  }
  return sketches;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> GenerateDesignSpaces(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target, double tolerance) {
  HONE_RETURN_IF_ERROR(workload->Validate());
  const RuleContext context{workload, &target};
  std::vector<Sketch> sketches = ApplyRules(context, InitialSketch(*workload));
  for (const Algorithm& algorithm : AlgorithmsFor(*workload, tolerance)) {
    for (Sketch& sketch : ApplyRules(context, InitialSketch(algorithm)))
      sketches.push_back(std::move(sketch));
  }
  std::vector<std::unique_ptr<DesignSpace>> spaces;
  absl::Status last = absl::InvalidArgumentError("no rule fits");
  for (Sketch& sketch : sketches) {
    const std::string name = sketch.name.empty() ? "plain" : absl::StrJoin(sketch.name, "_");
    absl::StatusOr<std::unique_ptr<DesignSpace>> space = DesignSpace::Create(
        name, workload, std::move(sketch.trace).Build(), std::move(sketch.constraints));
    if (!space.ok()) {
      last = space.status();
      continue;
    }
    const bool known = std::any_of(spaces.begin(), spaces.end(), [&](const auto& s) {
      return s->digest() == (*space)->digest();
    });
    if (!known) spaces.push_back(*std::move(space));
  }
  if (spaces.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("workload ", workload->name, ": ", last.message()));
  return spaces;
}

absl::StatusOr<std::unique_ptr<DesignSpace>> DefaultCandidate(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target) {
  HONE_RETURN_IF_ERROR(workload->Validate());
  const ir::Program program = ir::Program::FromWorkload(workload);
  Sketch sketch = InitialSketch(*workload);
  for (const Nest& nest : sketch.nests) {
    const ir::Block& block = program.BlockOf(program.FindBlock(nest.name));
    const int64_t lanes = TileLimits::Of(target, program.buffers[block.outputs[0]].dtype).lanes;
    SchedulePlainNest(sketch.trace, nest.block, block, lanes, /*sampled=*/false);
  }
  return DesignSpace::Create("default", std::move(workload), std::move(sketch.trace).Build());
}

}  // namespace hone::space
