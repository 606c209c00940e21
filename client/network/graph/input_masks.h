#ifndef HONE_CLIENT_NETWORK_GRAPH_INPUT_MASKS_H_
#define HONE_CLIENT_NETWORK_GRAPH_INPUT_MASKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/group.h"
#include "common/ir/dtype.h"
#include "common/ir/interpreter.h"

namespace hone::graph {

inline constexpr int kNoAxis = -1;

// An input of which each element hides or shows one position of a sequence, such as
// `attention_mask` of BERT. If a sequence is padded, its elements behind the sequence must hide.
struct InputMask {
  // Which positions of the sequence each row of the mask must show. The first one beside a causal
  // mask, because the first row of the scores sees no other. None if it only masks sums and counts.
  enum class Needs { kNothing, kOne, kFirst };

  int input = 0;                   // its number
  std::string hides;               // the bytes of an element that hides its position
  std::vector<std::string> shows;  // those of elements that show it: 0, 1 or both
  Needs needs = Needs::kOne;
  friend bool operator==(const InputMask&, const InputMask&) = default;
};

// Finds the inputs of a graph that can be such masks, and what is computed from one of them and
// constants: a mask is a tensor of which each element depends on one element of one input. Which
// elements hide is not assumed: masks are computed for each choice of values. Used by
// CheckSamplesAreIndependent (samples.h).
class InputMasks {
 public:
  // A set of choices of an element that hides and one that shows.
  using Choices = uint32_t;

  // The least and the largest of some elements of a mask.
  struct Extremes {
    double least = 0, most = 0;
  };
  // The elements of which something is wanted: all, or those of the first position.
  enum class Elements { kAll, kFirst };

  // An input can be a mask if its dimension `axes[input]` has the extent `samples`. `growing`: the
  // dimensions of constants and results that grow with the number of samples. All must outlive this
  // object.
  InputMasks(const Graph& graph, int64_t samples, const std::vector<int>& axes,
             const std::map<ValueId, std::vector<int>>& growing);

  // Whether the result of a node is a mask. `group`: the node alone. Nodes are given in order.
  bool Follow(int node, const Group& group);

  bool IsMask(ValueId id) const { return masks_.contains(id); }
  // REQUIRES: IsMask(id).
  int InputOf(ValueId id) const { return masks_.at(id).input; }
  // The dimension of a mask that has the positions. REQUIRES: IsMask(id).
  int AxisOf(ValueId id) const;
  // Whether a mask grows only in this dimension. REQUIRES: IsMask(id).
  bool GrowsOnce(ValueId id) const { return GrowingOf(id) == std::vector{AxisOf(id)}; }

  // The choices for which all elements of a mask are as wanted if the input hides all positions,
  // and these elements if it shows all. REQUIRES: IsMask(id).
  Choices Fitting(ValueId id, absl::FunctionRef<bool(const Extremes&)> hides,
                  absl::FunctionRef<bool(const Extremes&)> shows, Elements shown = Elements::kAll);

  // Requires one of these choices for an input, and that its rows show positions. False if no
  // choice is left; nothing is then required.
  bool Require(int input, Choices choices, InputMask::Needs needs);
  // The same for a node that sums or counts what is masked, which needs no shown position.
  bool RequireForSum(int node, int input, Choices choices);
  // Notes that a node reads an input in another way than as a mask.
  void ReadBy(int node, int input) { readers_.emplace(input, node); }

  // The inputs of which a choice is required, with the first element that is left to hide.
  // FailedPrecondition: such an input is also read in another way.
  absl::StatusOr<std::vector<InputMask>> Chosen() const;

 private:
  struct Mask {
    int input = 0;
    // The dimension of the mask for each dimension of the input; kNoAxis for those of extent 1.
    std::vector<int> axes;
    bool is_exact = true;  // for integers of any size
  };

  bool FollowLoads(const Group& group, ValueId output, Mask& mask) const;
  const std::vector<int>& GrowingOf(ValueId id) const;
  // Bounds of the elements of a mask if those of the input have this value.
  struct Bounds {
    Extremes all, first;
  };
  // nullopt: it has NaN, or cannot be computed.
  std::optional<Bounds> BoundsOf(ValueId id, ir::Scalar value);
  // The nodes that compute a mask.
  std::set<int> NodesOf(ValueId id) const;
  // The elements of a mask. nullopt: there are too many, or they cannot be computed.
  std::optional<ir::Scalars> ElementsOf(ValueId id, ir::Scalar value) const;
  // Its only element, if all are equal because constants have one element. nullopt: they are not.
  std::optional<ir::Scalar> OnlyElementOf(ValueId id, ir::Scalar value) const;

  const Graph& graph_;
  const std::vector<int>& axes_;
  const std::map<ValueId, std::vector<int>>& growing_;
  std::map<ValueId, Mask> masks_;  // also the inputs themselves
  std::map<ValueId, std::vector<int>> input_growing_;
  std::map<ValueId, int> producers_;                                        // the nodes of masks
  std::map<std::pair<ValueId, std::string>, std::optional<Bounds>> known_;  // by element
  struct Requirement {
    Choices choices = 0;
    InputMask::Needs needs = InputMask::Needs::kNothing;
    int node = -1;  // the first one that sums or counts
  };
  std::map<int, Requirement> required_;  // by input
  std::map<int, int> readers_;           // by input: a node
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_INPUT_MASKS_H_
