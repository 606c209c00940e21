#include "tests/common/schedule/tolerance_needed.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/rewrite/rewrite.h"

namespace hone::schedule {

absl::StatusOr<double> ToleranceNeeded(const ir::Workload& workload, const Trace& trace,
                                       absl::Span<const int64_t> decisions) {
  if (static_cast<int>(decisions.size()) != trace.decisions) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trace takes ", trace.decisions, " decisions, not ", decisions.size()));
  }
  double total = 0;
  ir::Workload rewritten = workload;
  std::vector<int64_t> ints(trace.ints, 0);
  for (const Instruction& instruction : trace.instructions) {
    for (int i = 0; i < instruction.decision_count; ++i) {
      const Operand& result = instruction.results[i];  // a loop if a location is sampled
      if (result.kind == Operand::Kind::kInt)
        ints[result.reg] = decisions[instruction.decision_begin + i];
    }
    if (instruction.primitive->name != "rewrite") continue;
    std::vector<int64_t> numbers;
    for (size_t i = 2; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      numbers.push_back(operand.kind == Operand::Kind::kInt ? ints[operand.reg] : operand.number);
    }
    const std::string &name = instruction.operands[0].text, &stage = instruction.operands[1].text;
    HONE_ASSIGN_OR_RETURN(const double needed, RewriteTolerance(rewritten, name, stage, numbers));
    total += needed;
    HONE_ASSIGN_OR_RETURN(rewritten, ApplyRewriteTo(rewritten, name, stage, numbers));
  }
  return total;
}

}  // namespace hone::schedule
