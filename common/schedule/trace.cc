#include "common/schedule/trace.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/rewrite/rewrite.h"

namespace hone::schedule {
namespace {

std::string OperandText(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kBlock:
      return absl::StrCat("b", operand.reg);
    case Operand::Kind::kLoop:
      return absl::StrCat("l", operand.reg);
    case Operand::Kind::kInt:
      return absl::StrCat("x", operand.reg);
    case Operand::Kind::kNumber:
      return absl::StrCat(operand.number);
    case Operand::Kind::kString:
      return absl::StrCat("\"", operand.text, "\"");
  }
  return "";
}

}  // namespace

Operand Trace::NewRegister(char letter) {
  switch (letter) {
    case 'b':
      return {.kind = Operand::Kind::kBlock, .reg = blocks++};
    case 'l':
      return {.kind = Operand::Kind::kLoop, .reg = loops++};
    default:
      return {.kind = Operand::Kind::kInt, .reg = ints++};
  }
}

absl::Status CheckDecided(const ParsedTrace& parsed, absl::string_view why) {
  const int open = parsed.trace.decisions - static_cast<int>(parsed.decisions.size());
  if (open == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the trace is a design space with ", Counted(open, "decision"), " open; ", why));
}

std::string Trace::ToText(absl::Span<const int64_t> decided) const {
  std::string text;
  for (const Instruction& instruction : instructions) {
    if (!instruction.results.empty()) {
      absl::StrAppend(
          &text,
          absl::StrJoin(instruction.results, ", ",
                        [](std::string* out, const Operand& o) { *out += OperandText(o); }),
          " = ");
    }
    absl::StrAppend(&text, instruction.primitive->name, "(");
    absl::string_view separator = "";
    for (const Operand& operand : instruction.operands) {
      absl::StrAppend(&text, separator, OperandText(operand));
      separator = ", ";
    }
    for (const Attribute& attribute : instruction.attributes) {
      const std::string numbers = absl::StrJoin(attribute.numbers, ", ");
      const bool one = attribute.numbers.size() == 1;
      absl::StrAppend(&text, separator, attribute.name, "=", one ? "" : "[", numbers,
                      one ? "" : "]");
      separator = ", ";
    }
    text += ")";
    if (instruction.decision_count > 0 && !decided.empty()) {
      absl::StrAppend(
          &text, " = [",
          absl::StrJoin(decided.subspan(instruction.decision_begin, instruction.decision_count),
                        ", "),
          "]");
    }
    text += "\n";
  }
  return text;
}

std::string TraceFileText(const ir::Workload& workload, const Trace& trace,
                          absl::Span<const int64_t> decided) {
  return absl::StrCat(workload.ToText(), kTraceHeader, "\n", trace.ToText(decided));
}

absl::StatusOr<int> DecisionCount(const Instruction& instruction) {
  const bool tile = instruction.primitive->results == "i*";
  const bool location =
      instruction.primitive->results == "l";  // the candidates are loops of the program
  int parts = 0;
  bool candidates = false;
  for (const Attribute& attribute : instruction.attributes) {
    const auto is_one_from = [&](int64_t low, int64_t high) {
      return attribute.numbers.size() == 1 && attribute.numbers[0] >= low &&
             attribute.numbers[0] <= high;
    };
    if (tile && attribute.name == "parts") {
      if (!is_one_from(1, 16))
        return absl::InvalidArgumentError("parts must be one number from 1 to 16");
      parts = static_cast<int>(attribute.numbers[0]);
    } else if (tile && attribute.name == "max_inner") {
      if (!is_one_from(0, ir::kMaxElements))
        return absl::InvalidArgumentError("max_inner must be one number, 0 or more");
    } else if (location && attribute.name == "outermost") {
      if (!is_one_from(1, 64))
        return absl::InvalidArgumentError("outermost must be one number from 1 to 64");
    } else if (!tile && !location && attribute.name == "candidates") {
      candidates = true;
      if (attribute.numbers.empty() ||
          attribute.numbers.size() % instruction.primitive->results.size() != 0) {
        return absl::InvalidArgumentError(absl::StrCat("candidates must be a list of rows of ",
                                                       instruction.primitive->results.size()));
      }
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(instruction.primitive->name, " has no attribute '", attribute.name,
                       "'; the form is ", instruction.primitive->Usage()));
    }
  }
  if (tile && parts == 0)
    return absl::InvalidArgumentError(absl::StrCat(instruction.primitive->name, " needs parts="));
  if (!tile && !location && !candidates)
    return absl::InvalidArgumentError(
        absl::StrCat(instruction.primitive->name, " needs candidates=[…]"));
  return tile ? parts : static_cast<int>(instruction.primitive->results.size());
}

std::vector<Operand> TraceBuilder::Add(absl::string_view name, std::vector<Operand> operands,
                                       std::vector<Attribute> attributes, int results) {
  Instruction instruction{.primitive = FindPrimitive(name),
                          .operands = std::move(operands),
                          .attributes = std::move(attributes)};
  if (instruction.primitive == nullptr) std::abort();
  absl::string_view kinds = instruction.primitive->results;
  if (instruction.primitive->samples) {
    instruction.decision_begin = trace_.decisions;
    instruction.decision_count = DecisionCount(instruction).value();
    trace_.decisions += instruction.decision_count;
    results = instruction.decision_count;
  }
  const bool repeats = !kinds.empty() && kinds.back() == '*';
  if (repeats) kinds.remove_suffix(1);
  if (results < 0) results = static_cast<int>(kinds.size());
  for (int i = 0; i < results; ++i) {
    const size_t letter = std::min<size_t>(i, kinds.size() - 1);
    instruction.results.push_back(trace_.NewRegister(kinds[letter]));
  }
  trace_.instructions.push_back(std::move(instruction));
  return trace_.instructions.back().results;
}

absl::StatusOr<std::vector<UsedRewrite>> RewritesOf(const ir::Workload& workload,
                                                    const Trace& trace,
                                                    absl::Span<const int64_t> decisions) {
  if (static_cast<int>(decisions.size()) != trace.decisions) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trace takes ", trace.decisions, " decisions, not ", decisions.size()));
  }
  std::vector<UsedRewrite> used;
  ir::Workload rewritten = workload;
  std::vector<int64_t> ints(trace.ints, 0);
  for (const Instruction& instruction : trace.instructions) {
    for (int i = 0; i < instruction.decision_count; ++i) {
      const Operand& result = instruction.results[i];  // a loop if a location is sampled
      if (result.kind == Operand::Kind::kInt)
        ints[result.reg] = decisions[instruction.decision_begin + i];
    }
    if (instruction.primitive->name != "rewrite") continue;
    UsedRewrite rewrite{.name = instruction.operands[0].text,
                        .stage = instruction.operands[1].text};
    for (size_t i = 2; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      rewrite.numbers.push_back(operand.kind == Operand::Kind::kInt ? ints[operand.reg]
                                                                    : operand.number);
    }
    HONE_ASSIGN_OR_RETURN(rewrite.tolerance, RewriteTolerance(rewritten, rewrite.name,
                                                              rewrite.stage, rewrite.numbers));
    HONE_ASSIGN_OR_RETURN(rewritten,
                          ApplyRewriteTo(rewritten, rewrite.name, rewrite.stage, rewrite.numbers));
    used.push_back(std::move(rewrite));
  }
  return used;
}

}  // namespace hone::schedule
