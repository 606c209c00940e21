#include "client/network/graph/pass/passes.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// Ends, because every change removes a node, an output or a value, brings a node closer to the
// inputs, or turns a product of floats into one of integers.
absl::Status Simplify(Graph& graph) {
  bool changed = true;
  while (changed) {
    changed = false;
    // Folding would replace quantized weights by floats, so it comes after the integer products.
    for (const auto pass : {UseUnsignedBytes, UseIntegerProducts, FoldScale}) {
      HONE_ASSIGN_OR_RETURN(const bool applied, pass(graph));
      changed |= applied;
    }
    HONE_ASSIGN_OR_RETURN(const bool folded, FoldConstants(graph));
    changed |= folded;
    for (const auto pass :
         {RemoveIdentity, ShareCommonSubexpressions, MergeReshapes, MergeTransposes, FoldPadding,
          FoldBatchNorm, SkipDequantization, RemoveDead}) {
      HONE_ASSIGN_OR_RETURN(const bool applied, pass(graph));
      changed |= applied;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Optimize(Graph& graph) {
  HONE_RETURN_IF_ERROR(Simplify(graph));
  // Later, because a shuffle must not separate a convolution from what is folded into it.
  HONE_ASSIGN_OR_RETURN(const bool folded, FoldShuffles(graph));
  if (folded) {
    HONE_RETURN_IF_ERROR(Simplify(graph));
  }
  HONE_ASSIGN_OR_RETURN(const bool changed, AssignLayouts(graph));
  if (!changed) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(Simplify(graph));
  HONE_RETURN_IF_ERROR(JoinAlongDepth(graph).status());
  return Simplify(graph);
}

}  // namespace hone::graph
