#include "common/base/status_macros.h"
#include "common/graph/pass/passes.h"

namespace hone::graph {

// Every change removes a node, an output or a value, or brings a node closer to the inputs, so this
// ends.
absl::Status Optimize(Graph& graph) {
  bool changed = true;
  while (changed) {
    changed = false;
    HONE_ASSIGN_OR_RETURN(const bool folded, FoldConstants(graph));
    changed |= folded;
    for (const auto pass : {RemoveIdentity, ShareCommonSubexpressions, MergeReshapes,
                            MergeTransposes, FoldPadding, FoldBatchNorm, RemoveDead}) {
      HONE_ASSIGN_OR_RETURN(const bool applied, pass(graph));
      changed |= applied;
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
