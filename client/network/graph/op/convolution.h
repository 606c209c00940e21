#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_CONVOLUTION_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_CONVOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/stage_writer.h"

namespace hone::graph {

// A convolution Y[n, co, …] = Σ X[n, ci, …] · W[co, ci/groups, …]. With channels last (window.h),
// Y[n, …, co] = Σ X[n, …, ci] · W[…, ci/groups, co]. The positions of X and W among the inputs
// differ between operators.
struct Convolution {
  int x, w;  // their positions
  bool channels_last;
  int64_t groups;
  int64_t group_inputs, group_outputs;  // channels per group
  int64_t shuffled_groups;              // of the channels of the image (window.h); 1: not shuffled
  std::vector<Window> windows;
  std::vector<int64_t> shape;  // of the result

  // InvalidArgument: the shapes or attributes do not fit.
  static absl::StatusOr<Convolution> Of(const NodeView& node, int x, int w);

  // Index expressions into the image and the kernel, in terms of the axes of Axes() and Reduced().
  std::vector<std::string> ImageIndices() const;
  std::vector<std::string> KernelIndices() const;
  // The axes of the result: "n", "c" and one per dimension.
  std::vector<std::string> Axes() const;
  // "sum(k: 64, r0: 3, r1: 3 where <guards>) ". Channels are the innermost reduction if they are
  // contiguous, otherwise the outermost. A group of one input channel has no reduction over
  // channels.
  std::string Reduced(bool channels = true) const;
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_CONVOLUTION_H_
