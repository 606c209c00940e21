#ifndef HONE_CLIENT_NETWORK_GRAPH_SAMPLE_ATTENTION_H_
#define HONE_CLIENT_NETWORK_GRAPH_SAMPLE_ATTENTION_H_

#include <optional>

#include "client/network/graph/graph.h"
#include "client/network/graph/input_masks.h"
#include "client/network/graph/sample_state.h"

namespace hone::graph {

// Follows the nodes of an attention over the samples, whose scores a constant causal mask, a mask
// from an input, or both, hide from rows that must not see them. The states must outlive this
// object.
class SampleAttention {
 public:
  explicit SampleAttention(SampleStates& states) : states_(states), graph_(states.graph()) {}

  // Sets the state of the output of a node. False: it is not such a node, or it may mix samples.
  bool Follow(int node);

 private:
  using Hidden = SamplePair::Hidden;
  using Plain = SamplePair::Plain;

  PaddingNumbers::Finite FiniteAfter(const Node& node) const;
  std::optional<SampleState> OfProduct(const Node& node);
  std::optional<SampleState> OfSoftmax(const Node& node) const;
  std::optional<SampleState> OfElementwise(const Node& node);
  std::optional<SampleState> OfMasked(const Node& node, SamplePair pair);
  std::optional<SampleState> OfAddedMask(ValueId mask, SamplePair pair);
  std::optional<SampleState> OfSelectingMask(const Node& node, SamplePair pair);
  // Scores for which the choices of the input of a mask are known, for the first column or all.
  std::optional<SampleState> MaskedBy(int input, SamplePair pair, InputMasks::Choices for_all,
                                      InputMasks::Choices for_first) const;

  // The pair of dimensions of a node whose inputs are broadcast, with what its inputs have in
  // common. nullopt: none has a pair, or they differ.
  std::optional<SamplePair> PairOf(const Node& node) const;
  Plain PlainAfter(const Node& node, const SamplePair& pair) const;
  // Whether the elements of a constant that is added to scores, or by which they are multiplied or
  // divided, are small enough.
  bool IsSmall(const Node& node, ValueId id) const;
  Hidden HiddenBy(const Node& node, const SamplePair& pair) const;
  // The same if scores are low at the padding, because an input hides it.
  Hidden StaysHidden(const Node& node) const;
  // Whether a tensor is 0 where shares are hidden.
  bool IsZeroBehind(ValueId id) const;
  // Whether a constant is a causal mask: `fits(element, true)` for all columns behind the row, and
  // `fits(element, false)` where they are the same.
  template <typename Fits>
  bool IsCausalMask(ValueId id, const Fits& fits) const;
  // Whether all elements of a constant are too low to have a share in a softmax.
  bool IsLow(ValueId id) const;
  // Whether the elements of a constant in the first column of the scores are as wanted.
  template <typename Wanted>
  bool AreAllInFirst(const Node& node, ValueId id, const SamplePair& pair,
                     const Wanted& wanted) const;

  SampleStates& states_;
  const Graph& graph_;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_SAMPLE_ATTENTION_H_
