#ifndef HONE_CLIENT_NETWORK_GRAPH_MASKED_SUMS_H_
#define HONE_CLIENT_NETWORK_GRAPH_MASKED_SUMS_H_

#include <cstddef>
#include <optional>

#include "client/network/graph/graph.h"
#include "client/network/graph/sample_state.h"

namespace hone::graph {

// Follows what an input masks outside of an attention:
// - sums and maxima over the samples, such as the mean of those that are shown: if the padding has
//   zeros, or numbers that are too low, it does not change them;
// - counts of the shown samples up to each one (CumSum), which are numbers of positions. Behind the
//   samples, they repeat the last one.
// The states must outlive this object.
class MaskedSums {
 public:
  explicit MaskedSums(SampleStates& states) : states_(states), graph_(states.graph()) {}

  // Sets the state of the output of a node. False: it is not such a node.
  bool Follow(int node);
  // Sets what else is known of the output of any other node, if it reads elements that are masked.
  // REQUIRES: the state of its output is set.
  void FollowOther(int node);
  // Notes that a tensor, if its elements are masked, is read in another way.
  void Read(ValueId id);

 private:
  using Hidden = MaskedSamples::Hidden;

  bool IsUnknown(ValueId id) const;
  // Whether the elements of a tensor at the padding are finite.
  bool IsFinite(ValueId id) const;
  // The elements of a tensor, if they are 0 where samples are hidden. `n` reads them.
  std::optional<MaskedSamples> ZerosOf(int n, ValueId id);
  // The dimension of such a tensor that has the samples.
  int AxisOf(ValueId id) const;
  // Whether the elements of a tensor at the padding are finite, and depend only on their own sample
  // along an axis of the result of a node with broadcasting.
  bool IsOrdinary(const Node& node, ValueId id, int axis) const;
  // Whether a tensor is a mask from this input.
  bool IsMaskOf(ValueId id, int input) const;
  // Notes that a node reads a tensor, which might be another mask, as any numbers.
  void ReadAsOrdinary(int n, ValueId id);
  // Whether the result of a node grows only along one dimension.
  bool GrowsAlong(const Node& node, int axis) const;

  // Which of the two factors of a node is a mask. Both may be; that of the smaller input is.
  size_t IndexOfMask(int n);
  // Requires that the input hides the padding, for a node. False if it cannot.
  bool Require(int n, const MaskedSamples& masked);

  std::optional<SampleState> OfMul(int n);
  std::optional<SampleState> OfWhere(int n);
  std::optional<SampleState> OfReduction(int n);
  std::optional<SampleState> OfMatMul(int n);
  std::optional<SampleState> OfCumSum(int n);
  // An elementwise node that reads counts and the mask of which they are.
  std::optional<SampleState> OfCounts(int n);
  // What the output of any other node has at the padding. nullopt: it is not known.
  std::optional<MaskedSamples> Kept(const Node& node) const;

  SampleStates& states_;
  const Graph& graph_;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_MASKED_SUMS_H_
