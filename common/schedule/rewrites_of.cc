#include "common/schedule/rewrites_of.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/rewrite/rewrite.h"

namespace hone::schedule {

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
