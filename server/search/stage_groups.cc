#include "server/search/stage_groups.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/rng.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"

namespace hone::search {
namespace {

using schedule::Instruction;
using schedule::Operand;
using schedule::Trace;

constexpr int kNone = -1;
constexpr absl::string_view kBlockOfName = "block";

// Finds the stages to which the registers of a trace belong.
class StageFlow {
 public:
  explicit StageFlow(const Trace& trace)
      : blocks_(trace.blocks, kNone),
        loops_(trace.loops, kNone),
        sampling_of_int_(trace.ints, kNone),
        stage_of_sampling_(trace.decisions, kNone) {
    for (const Instruction& instruction : trace.instructions) Follow(instruction);
    // A stage without decisions joins the stage where it is computed.
    for (size_t pass = 0; pass < parents_.size(); ++pass) {
      for (size_t stage = 0; stage < parents_.size(); ++stage) {
        if (placed_at_[stage] != kNone && !HasDecisions(stage)) Join(stage, placed_at_[stage]);
      }
    }
  }

  // Per number of the decision vector, a representative stage of its group.
  std::vector<int> OfDecisions(const Trace& trace) {
    std::vector<int> stages(trace.decisions, kNone);
    for (const Instruction& instruction : trace.instructions) {
      if (instruction.decision_count == 0) continue;
      const int stage = stage_of_sampling_[instruction.decision_begin];
      std::fill_n(stages.begin() + instruction.decision_begin, instruction.decision_count,
                  stage == kNone ? kNone : Root(stage));
    }
    return stages;
  }
  // Per instruction, the stage that it transforms or introduces.
  const std::vector<int>& OfInstructions() const { return of_instructions_; }
  // The representative of the stages that are joined with `stage`.
  int Root(int stage) {
    while (parents_[stage] != stage) stage = parents_[stage] = parents_[parents_[stage]];
    return stage;
  }

 private:
  int StageOf(const Operand& operand) const {
    if (operand.reg < 0) return kNone;
    if (operand.kind == Operand::Kind::kBlock) return blocks_[operand.reg];
    return operand.kind == Operand::Kind::kLoop ? loops_[operand.reg] : kNone;
  }

  int StageOfName(const std::string& name) {
    const auto [entry, fresh] = names_.emplace(name, static_cast<int>(parents_.size()));
    if (fresh) {
      parents_.push_back(entry->second);
      placed_at_.push_back(kNone);
    }
    return entry->second;
  }

  void Follow(const Instruction& instruction) {
    int stage = kNone;
    for (const Operand& operand : instruction.operands) {
      const int here = StageOf(operand);
      if (here == kNone) continue;
      if (stage == kNone) {
        stage = here;
      } else if (here != stage && instruction.operands[0].kind == Operand::Kind::kBlock &&
                 operand.kind == Operand::Kind::kLoop) {
        placed_at_[stage] = here;  // compute_at or reverse_compute_at
      }
    }
    if (instruction.primitive->name == kBlockOfName && !instruction.operands.empty()) {
      stage = StageOfName(instruction.operands[0].text);
    }
    of_instructions_.push_back(stage);
    for (const Operand& operand : instruction.operands) {
      if (operand.kind == Operand::Kind::kInt && operand.reg >= 0) {
        Shape(sampling_of_int_[operand.reg], stage);
      }
    }
    if (instruction.decision_count > 0) Shape(instruction.decision_begin, stage);
    for (const Operand& result : instruction.results) {
      if (result.kind == Operand::Kind::kBlock) blocks_[result.reg] = stage;
      if (result.kind == Operand::Kind::kLoop) loops_[result.reg] = stage;
      if (result.kind == Operand::Kind::kInt) {
        sampling_of_int_[result.reg] = instruction.decision_begin;
      }
    }
  }

  // Records that an instruction that transforms `stage` reads the decision of `sampling`.
  void Shape(int sampling, int stage) {
    if (sampling == kNone || stage == kNone) return;
    int& before = stage_of_sampling_[sampling];
    if (before == kNone) {
      before = stage;
    } else {
      Join(before, stage);
    }
  }
  void Join(int a, int b) {
    const int low = std::min(Root(a), Root(b)), high = std::max(Root(a), Root(b));
    parents_[high] = low;
  }
  bool HasDecisions(int stage) {
    return std::any_of(stage_of_sampling_.begin(), stage_of_sampling_.end(),
                       [&](int other) { return other != kNone && Root(other) == Root(stage); });
  }

  // A sampling instruction is identified by the index of its first decision.
  std::vector<int> blocks_, loops_;     // stages by register
  std::vector<int> sampling_of_int_;    // samplings by register
  std::vector<int> stage_of_sampling_;  // indexed by sampling
  std::vector<int> of_instructions_;
  absl::flat_hash_map<std::string, int> names_;
  std::vector<int> parents_;    // union-find over the stages
  std::vector<int> placed_at_;  // per stage, the stage where it is computed
};

// The names of all blocks after the first `instructions` of the space's trace; empty if these do
// not replay.
absl::flat_hash_set<std::string> BlocksAfter(const space::DesignSpace& space, size_t instructions,
                                             absl::Span<const int64_t> decisions) {
  Trace trace = space.trace();
  trace.instructions.resize(instructions);
  absl::flat_hash_set<std::string> names;
  const absl::StatusOr<ir::Program> program = schedule::Replay(space.workload(), trace, decisions);
  if (!program.ok()) return names;
  for (const ir::NodeId block : program->AllBlocks()) names.insert(program->BlockOf(block).name);
  return names;
}

}  // namespace

StageGroups StageGroups::Of(const space::DesignSpace& space) {
  StageGroups groups;
  StageFlow flow(space.trace());
  groups.of_decisions_ = flow.OfDecisions(space.trace());
  absl::flat_hash_map<int, int> numbers;  // group numbers by representative
  for (int& stage : groups.of_decisions_) {
    if (stage == kNone) continue;
    stage = numbers.emplace(stage, static_cast<int>(numbers.size())).first->second;
  }
  groups.count_ = static_cast<int>(numbers.size());
  if (groups.count_ < 2) return groups;
  Rng rng(/*key=*/0);
  const absl::StatusOr<std::vector<int64_t>> any = space.Sample(rng);
  if (!any.ok()) return groups;
  const std::vector<Instruction>& instructions = space.trace().instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const int stage = flow.OfInstructions()[i];
    if (stage == kNone) continue;
    const auto number = numbers.find(flow.Root(stage));
    const int group = number == numbers.end() ? kNone : number->second;
    if (instructions[i].primitive->name == kBlockOfName) {
      groups.of_blocks_[instructions[i].operands[0].text] = group;
      continue;
    }
    const bool makes_blocks =
        std::any_of(instructions[i].results.begin(), instructions[i].results.end(),
                    [](const Operand& result) { return result.kind == Operand::Kind::kBlock; });
    if (!makes_blocks) continue;
    const absl::flat_hash_set<std::string> before = BlocksAfter(space, i, *any);
    for (const std::string& name : BlocksAfter(space, i + 1, *any)) {
      if (!before.contains(name)) groups.of_blocks_.emplace(name, group);
    }
  }
  return groups;
}

std::vector<int> StageGroups::OfStatements(const ir::Program& program) const {
  std::vector<int> groups;
  for (const ir::NodeId kernel : program.kernels) {
    // A prepack kernel is not timed and has no statements.
    if (program.node(kernel).name == ir::kPrepackKernel) continue;
    for (const ir::NodeId block : program.BlocksUnder(kernel)) {
      const auto group = of_blocks_.find(program.BlockOf(block).name);
      groups.push_back(group == of_blocks_.end() ? kNone : group->second);
    }
  }
  return groups;
}

std::vector<int64_t> MergeStages(const StageGroups& groups, absl::Span<const int64_t> a,
                                 absl::Span<const double> scores_a, absl::Span<const int64_t> b,
                                 absl::Span<const double> scores_b) {
  std::vector<int64_t> merged(a.begin(), a.end());
  for (size_t i = 0; i < merged.size(); ++i) {
    const int group = groups.of_decisions()[i];
    if (group >= 0 && scores_b[group] > scores_a[group]) merged[i] = b[i];
  }
  return merged;
}

}  // namespace hone::search
