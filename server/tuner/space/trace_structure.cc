#include "server/tuner/space/trace_structure.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hone::space {
namespace {

using schedule::Operand;

void AppendOperands(const std::vector<Operand>& operands, std::string& text) {
  for (const Operand& operand : operands) {
    absl::StrAppend(&text, " ", static_cast<int>(operand.kind), ":", operand.reg);
  }
}

}  // namespace

std::string StructureOf(const schedule::Trace& trace) {
  std::string text;
  for (const schedule::Instruction& instruction : trace.instructions) {
    absl::StrAppend(&text, instruction.primitive->name, "(");
    AppendOperands(instruction.operands, text);
    absl::StrAppend(&text, ") ", instruction.decision_count, " ->");
    AppendOperands(instruction.results, text);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

int EqualInstructions(const schedule::Trace& a, const schedule::Trace& b) {
  int equal = 0;
  const size_t count = std::min(a.instructions.size(), b.instructions.size());
  for (size_t i = 0; i < count; ++i) equal += a.instructions[i] == b.instructions[i];
  return equal;
}

}  // namespace hone::space
