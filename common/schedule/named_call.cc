#include "common/schedule/named_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/schedule/replay.h"

namespace hone::schedule {
namespace {

bool UsesAny(const Instruction& user, const std::vector<Operand>& results) {
  return std::ranges::any_of(user.operands, [&](const Operand& operand) {
    return std::ranges::find(results, operand) != results.end();
  });
}

// Returns the node of a block or loop; kNoNode: the register was not set.
ir::NodeId NodeOfOperand(const PartialReplay& state, const Operand& operand) {
  const auto& nodes = operand.kind == Operand::Kind::kBlock ? state.blocks : state.loops;
  const bool set = operand.reg >= 0 && operand.reg < static_cast<int32_t>(nodes.size());
  return set ? nodes[operand.reg] : ir::kNoNode;
}

std::string NameOf(const PartialReplay& state, const Operand& operand) {
  const ir::NodeId id = NodeOfOperand(state, operand);
  const ir::Program& program = state.replayed.program;
  if (program.IsBlock(id)) return program.BlockOf(id).name;
  if (program.IsLoop(id)) return program.atoms[program.node(id).var].name;
  return "-";  // a sampled location that leaves the block where it is
}

// Returns the text of an instruction in the state before it. `own`: the results of the sampling
// that the text is about; null: all decisions are *.
std::string TextOf(const Instruction& instruction, const PartialReplay& state,
                   const std::vector<Operand>* own) {
  const auto text = [&](const Operand& operand) -> std::string {
    const bool is_own = own == nullptr || std::ranges::find(*own, operand) != own->end();
    switch (operand.kind) {
      case Operand::Kind::kBlock:
        return NameOf(state, operand);
      case Operand::Kind::kLoop:
        return own != nullptr && is_own ? "*" : NameOf(state, operand);
      case Operand::Kind::kInt:
        return is_own ? "*" : "_";
      case Operand::Kind::kNumber:
        return absl::StrCat(operand.number);
      case Operand::Kind::kString:
        return absl::StrCat("\"", operand.text, "\"");
    }
    return "";
  };
  std::vector<std::string> words;
  for (const Operand& operand : instruction.operands) words.push_back(text(operand));
  for (const Attribute& attribute : instruction.attributes) {
    const bool one = attribute.numbers.size() == 1;
    words.push_back(absl::StrCat(attribute.name, "=", one ? "" : "[",
                                 absl::StrJoin(attribute.numbers, ", "), one ? "" : "]"));
  }
  return absl::StrCat(instruction.primitive->name, "(", absl::StrJoin(words, ", "), ")");
}

// Whether an instruction only names parts of the program, such as loops(b0).
bool OnlyLooksUp(const Instruction& instruction) {
  const absl::string_view name = instruction.primitive->name;
  return name == "block" || name == "loops";
}

}  // namespace

absl::StatusOr<std::vector<NamedCall>> NamedCallsOf(std::shared_ptr<const ir::Workload> workload,
                                                    const Trace& trace,
                                                    absl::Span<const int64_t> decisions) {
  GivenDecider decider(decisions);
  PartialReplay state = StartReplay(std::move(workload));
  std::vector<NamedCall> calls;
  std::vector<std::pair<size_t, const Instruction*>> unused;  // samplings, by position in `calls`
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    const Instruction& instruction = trace.instructions[i];
    std::erase_if(unused, [&](const auto& sampling) {
      if (!UsesAny(instruction, sampling.second->results)) return false;
      calls[sampling.first].text = TextOf(instruction, state, &sampling.second->results);
      return true;
    });
    if (instruction.decision_count > 0) {
      const auto values = decisions.subspan(instruction.decision_begin, instruction.decision_count);
      unused.emplace_back(calls.size(), &instruction);
      calls.push_back({.text = std::string(instruction.primitive->name),
                       .samples = true,
                       .values = {values.begin(), values.end()},
                       .begin = instruction.decision_begin});
    } else if (!OnlyLooksUp(instruction)) {
      calls.push_back({.text = TextOf(instruction, state, nullptr)});
    }
    HONE_RETURN_IF_ERROR(ContinueReplay(trace, decider, state, i + 1));
  }
  return calls;
}

std::vector<ChangedDecision> ChangedDecisions(absl::Span<const NamedCall> calls,
                                              absl::Span<const int64_t> other, size_t most) {
  std::vector<ChangedDecision> changed;
  for (const NamedCall& call : calls) {
    if (changed.size() > most) break;
    const auto values = other.subspan(call.begin, call.values.size());
    if (!call.samples || std::ranges::equal(call.values, values)) continue;
    changed.push_back({call.text, call.values, {values.begin(), values.end()}});
  }
  return changed;
}

}  // namespace hone::schedule
