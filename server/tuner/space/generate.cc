#include "server/tuner/space/generate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "server/tuner/space/algorithm.h"
#include "server/tuner/space/part_spaces.h"
#include "server/tuner/space/rule.h"
#include "server/tuner/space/stage_components.h"

namespace hone::space {
namespace {

constexpr int kMaxMinor = 1;          // per component
constexpr size_t kThorough = 64;      // the first spaces are probed thoroughly
constexpr size_t kMaxSketches = 256;  // limit for intermediate sketches
// Replays that may fail, times stages, while the spaces of a workload are tried out. Takes half a
// second.
constexpr int64_t kFailures = 120000;

// Adds a block register and a nest per stage. `minor` is the initial value for every component.
void AddNests(const ir::Workload& workload, int minor, Sketch& sketch) {
  const std::vector<int> components = StageComponents(workload);
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const std::string& name = workload.tensors[workload.stages[s].tensors[0]].name;
    sketch.nests.push_back({.name = name,
                            .block = sketch.trace.Add("block", {schedule::Text(name)})[0],
                            .component = components[s]});
    sketch.components.resize(std::max(sketch.components.size(), components[s] + size_t{1}),
                             {.minor = minor});
  }
}

Sketch InitialSketch(const ir::Workload& workload) {
  Sketch sketch;
  AddNests(workload, /*minor=*/0, sketch);
  return sketch;
}

// Makes the initial sketch for another algorithm, which has its own stages.
Sketch InitialSketch(const Algorithm& algorithm) {
  Sketch sketch;
  std::vector<schedule::Operand> operands = {schedule::Text(algorithm.rewrite),
                                             schedule::Text(algorithm.stage)};
  for (const int64_t number : algorithm.numbers) operands.push_back(Literal(number));
  sketch.trace.Add("rewrite", std::move(operands));
  AddNests(algorithm.rewritten, /*minor=*/algorithm.thoroughly ? 0 : kMaxMinor, sketch);
  sketch.name.push_back(algorithm.name);
  return sketch;
}

// Returns the block for a rule's turn; nullopt if the sketch has no more blocks.
std::optional<int> NestAt(const Rule& rule, const Sketch& sketch, size_t turn) {
  if (turn >= sketch.nests.size()) return std::nullopt;
  return static_cast<int>(rule.last_first ? sketch.nests.size() - 1 - turn : turn);
}

// Applies a rule to a block of a sketch and drops results with too many minor alternatives; nullopt
// if the rule does not apply.
std::optional<std::vector<Sketch>> Alternatives(const RuleContext& context, const Rule& rule,
                                                Sketch& sketch, int nest) {
  const int component = sketch.nests[nest].component;
  sketch.minor = sketch.components[component].minor;
  std::vector<Sketch> alternatives = rule.apply(context, sketch, nest);
  if (alternatives.empty()) return std::nullopt;
  std::erase_if(alternatives, [](const Sketch& s) { return s.minor > kMaxMinor; });
  for (size_t a = 0; a < alternatives.size(); ++a) {
    Sketch& alternative = alternatives[a];
    for (size_t added = sketch.nests.size(); added < alternative.nests.size(); ++added)
      alternative.nests[added].component = component;
    ComponentChoices& choices = alternative.components[component];
    choices.minor = alternative.minor;
    if (alternatives.size() > 1) choices.taken.push_back(static_cast<int>(a));
  }
  return alternatives;
}

// Applies a rule to one block of every sketch.
//
// The alternatives of a component are combined with each other, but not with those of other
// components, because the product would be large and add nothing. Sketches that made the same
// choices in the current component divide the alternatives among them: the i-th sketch takes the
// i-th one. If there are more sketches, they start again from the first; if there are more
// alternatives, a sketch takes several. Each alternative thus occurs, and there are about as many
// sketches as the component with the most choices needs.
std::vector<Sketch> ApplyToBlock(const RuleContext& context, const Rule& rule, size_t turn,
                                 std::vector<Sketch> sketches) {
  using Group = std::pair<int, ComponentChoices>;
  const auto group_of = [](const Sketch& sketch, int nest) -> Group {
    const int component = sketch.nests[nest].component;
    return {component, sketch.components[component]};
  };
  std::map<Group, size_t> sizes, seen;
  for (const Sketch& sketch : sketches) {
    if (const std::optional<int> nest = NestAt(rule, sketch, turn))
      ++sizes[group_of(sketch, *nest)];
  }
  std::vector<Sketch> next;
  const auto keep = [&](Sketch sketch) {
    if (next.size() < kMaxSketches) next.push_back(std::move(sketch));
  };
  for (Sketch& sketch : sketches) {
    const std::optional<int> nest = NestAt(rule, sketch, turn);
    if (!nest.has_value()) {
      keep(std::move(sketch));
      continue;
    }
    const Group group = group_of(sketch, *nest);
    const size_t size = sizes[group], place = seen[group]++;
    std::optional<std::vector<Sketch>> alternatives = Alternatives(context, rule, sketch, *nest);
    if (!alternatives.has_value()) {
      keep(std::move(sketch));
    } else if (const size_t count = alternatives->size(); place >= count && count > 0) {
      keep(std::move((*alternatives)[place % count]));
    } else {
      for (size_t a = place; a < count; a += size) keep(std::move((*alternatives)[a]));
    }
  }
  return next;
}

absl::Status Check(const Generation& generation) {
  return generation.check == nullptr ? absl::OkStatus() : generation.check();
}

absl::StatusOr<std::vector<Sketch>> ApplyRules(const RuleContext& context, Sketch initial,
                                               const Generation& generation) {
  std::vector<Sketch> sketches;
  sketches.push_back(std::move(initial));
  for (const Rule& rule : Rules()) {
    if (!rule.Fits(*context.target)) continue;
    // The number of nests can grow, because rules add nests for the blocks that they create.
    for (size_t turn = 0; std::any_of(sketches.begin(), sketches.end(),
                                      [&](const Sketch& s) { return turn < s.nests.size(); });
         ++turn) {
      HONE_RETURN_IF_ERROR(Check(generation));
      sketches = ApplyToBlock(context, rule, turn, std::move(sketches));
    }
  }
  return sketches;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> GenerateDesignSpaces(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target,
    const Generation& generation) {
  HONE_RETURN_IF_ERROR(workload->Validate());
  if (const std::vector<StageRange> parts = PartsOf(*workload); HasManyParts(*workload, parts))
    return SpacesOfParts(std::move(workload), parts, target, generation);
  const RuleContext context{workload, &target};
  HONE_ASSIGN_OR_RETURN(std::vector<Sketch> sketches,
                        ApplyRules(context, InitialSketch(*workload), generation));
  for (const Algorithm& algorithm : AlgorithmsFor(*workload, target, generation.tolerance)) {
    HONE_ASSIGN_OR_RETURN(std::vector<Sketch> others,
                          ApplyRules(context, InitialSketch(algorithm), generation));
    for (Sketch& sketch : others) sketches.push_back(std::move(sketch));
  }
  std::vector<std::unique_ptr<DesignSpace>> spaces;
  int64_t failures = kFailures;
  for (Sketch& sketch : sketches) {
    HONE_RETURN_IF_ERROR(Check(generation));
    sketch.replay.reset();
    const std::string name = sketch.name.empty() ? "plain" : absl::StrJoin(sketch.name, "_");
    absl::StatusOr<std::unique_ptr<DesignSpace>> space = DesignSpace::Create(
        name, workload, std::move(sketch.trace).Build(), std::move(sketch.constraints),
        {.thorough = spaces.size() < kThorough, .failures = &failures});
    if (!space.ok()) {
      if (generation.dropped != nullptr) ++*generation.dropped;
      continue;
    }
    const bool known = std::any_of(spaces.begin(), spaces.end(), [&](const auto& s) {
      return s->digest() == (*space)->digest();
    });
    if (!known) spaces.push_back(*std::move(space));
  }
  if (spaces.empty()) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<DesignSpace> untiled,
                          DefaultCandidate(std::move(workload), target));
    spaces.push_back(std::move(untiled));
  }
  return spaces;
}

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> GenerateDesignSpaces(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target, double tolerance) {
  return GenerateDesignSpaces(std::move(workload), target, Generation{.tolerance = tolerance});
}

}  // namespace hone::space
