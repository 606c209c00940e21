#ifndef HONE_CLIENT_NETWORK_GRAPH_SAMPLE_STATE_H_
#define HONE_CLIENT_NETWORK_GRAPH_SAMPLE_STATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/input_masks.h"
#include "client/network/graph/padding_numbers.h"
#include "client/network/graph/samples.h"

// What the proof of samples.h knows of the tensors of a graph.
namespace hone::graph {

// Element i of dimension `axis` belongs to sample i / block.
struct SampleDim {
  int axis = 0;
  int64_t block = 1;
};

// Two dimensions with an index for each sample: element (i, j) depends only on samples up to i or
// j, whichever is later, or on those that are no padding.
struct SamplePair {
  // What is known of the elements with j > i, or those of the padding: that they are too low to
  // have a share in a softmax over the columns, where element (i, i) or another one that is no
  // padding is not hidden, or 0.
  enum class Hidden { kNothing, kLow, kZero };
  // The scores that no constant mask or large constant has changed: none for sure, those of the
  // first column, or all. What an input hides counts as unchanged.
  enum class Plain { kNone, kFirst, kAll };

  int row = 0, column = 0;
  Hidden hidden = Hidden::kNothing;
  Plain plain = Plain::kAll;
  bool is_lowered = false;  // a large constant that is no causal mask may have changed them
  // The input that must hide the padding, and the choices for which the above is true.
  int masked_by = kNoInput;
  InputMasks::Choices choices = 0;

  static constexpr int kNoInput = -1;
};

// Of elements that an input masks, what those of the padding are if it hides the padding.
struct MaskedSamples {
  // Zeros; too low to be the maximum; or what is computed from a count of shown positions, which
  // may be a zero, too.
  enum class Hidden { kZero, kLow, kCount };
  Hidden hidden = Hidden::kZero;
  int input = 0;                    // its number
  InputMasks::Choices choices = 0;  // for which this is true
  int reader = 0;                   // the node that reads the mask
};

// What is known of a tensor.
struct SampleState {
  bool depends = false;  // whether its elements depend on those of a sample
  // One of these is set if the samples are known on which each element depends: those up to its
  // own, or those that are no padding.
  std::optional<SampleDim> sample;
  std::optional<SamplePair> pair;
  std::optional<MaskedSamples> masked;  // only if `sample` has a block of 1
  PaddingNumbers numbers;
  int mixed_by = -1;  // the first node that may have mixed samples; -1: none has
};

// The states of all tensors of a graph. The other arguments must outlive this object.
class SampleStates {
 public:
  // A mask that is added to scores hides those to which it adds this or less, and shows those to
  // which it adds this or more.
  static constexpr double kHides = -1e30, kShows = -1e6;
  // The same for a mask that is computed from an input, whose elements may have to be whole
  // numbers.
  static constexpr double kInputHides = -1e20;
  // The largest constant in scores that an input masks, and in counts.
  static constexpr double kMostInScores = 1e6;

  SampleStates(const Graph& graph, int64_t samples, const SampleAxes& axes);

  const Graph& graph() const { return graph_; }
  int64_t samples() const { return samples_; }
  InputMasks& masks() { return masks_; }
  const InputMasks& masks() const { return masks_; }
  SampleState& operator[](ValueId id) { return states_[id]; }
  const SampleState& operator[](ValueId id) const { return states_[id]; }

  const std::vector<int64_t>& ShapeOf(ValueId id) const { return graph_.value(id).type.shape; }
  // The dimensions of a result or constant that grow with the number of samples.
  const std::vector<int>& GrowingOf(ValueId id) const;
  // Whether each index of a dimension is a sample.
  bool HasSamples(ValueId id, int axis) const;
  // How many dimensions are before those of an input of a node with broadcasting.
  int ShiftOf(const Node& node, ValueId id) const;
  // Whether all elements of a constant that does not grow are as wanted.
  bool AreAll(ValueId id, absl::FunctionRef<bool(double)> wanted) const;
  // The same for any constant.
  bool AreAllOf(ValueId id, absl::FunctionRef<bool(double)> wanted) const {
    return AreAllElements(graph_, id, wanted);
  }
  // The numbers of the result of a node that is followed by its workload.
  PaddingNumbers NumbersOf(const Node& node) const;
  // Whether the numbers of all inputs of a node are finite.
  PaddingNumbers::Finite FiniteInputsOf(const Node& node) const;

 private:
  // An input or constant that grows in these dimensions.
  void Begin(ValueId id, const std::vector<int>& dimensions);

  const Graph& graph_;
  const int64_t samples_;
  const SampleAxes& axes_;
  InputMasks masks_;
  std::vector<SampleState> states_;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_SAMPLE_STATE_H_
