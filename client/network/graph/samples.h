#ifndef HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_
#define HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/input_masks.h"
#include "client/network/graph/partition.h"
#include "common/ir/workload.h"

// Whether a network that was imported for n samples may run fewer, with its inputs padded behind
// the samples. Two checks together prove it. The first one compares the imports for both numbers:
// apart from the extents, they must be the same, and constants that grow with the number must begin
// with the same elements. The second one follows the samples through the network: each sample of an
// output must depend only on the same sample of the inputs and of these constants, on samples
// before it, as behind an attention with a causal mask, or on all samples except for the padding,
// as behind an attention with a mask that is an input. So the first sample may be read by all. What
// is summed under such a mask depends on no sample.
namespace hone::graph {

// The position of an element in one dimension of a tensor.
int64_t PositionOf(const std::vector<int64_t>& shape, int64_t element, size_t dimension);

// The dimension of each input and output whose extent is a multiple of the number of samples, or
// kNoAxis. Tensors between them may have several such dimensions.
struct SampleAxes {
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::map<ValueId, std::vector<int>> growing;  // of constants and results of nodes
};

// Compares the graphs of one model for two numbers of samples, before any pass has changed them.
// FailedPrecondition: they differ in more than the extents, or a tensor has several dimensions that
// grow with the number. The message names the node or tensor.
absl::StatusOr<SampleAxes> CompareSamples(const Graph& graph, int64_t samples, const Graph& other,
                                          int64_t other_samples);

// Whether two workloads differ only in the extents of tensors and of the axes over which they
// extend. If the extent of a reduction or the bound of a guard differs, padding would add terms to
// sums.
bool DifferOnlyInExtents(const ir::Workload& a, const ir::Workload& b);

// Checks the graph that CompareSamples got. Returns the inputs that must hide the padding, which
// the proof takes for granted. FailedPrecondition: an output may depend on samples behind its own;
// the message names the node. REQUIRES: samples > 1.
//
// An attention with a mask is recognized by its operators: MatMul, Where or Add with a mask,
// Softmax and MatMul. What is hidden has scores of -1e20 or less, a causal mask -1e30 or less, and
// so a share of 0, unless scores are as large as that. A causal mask is a constant that hides what
// comes later. Another mask is computed from one input and constants, each element from one element
// of the input (input_masks.h), the same for all rows or beside a causal mask, which must show the
// first position then. Before it, only constants of at most 1e6 may change the scores: other masks
// could hide all that it shows. What else reads such an input must be a sum, maximum or count of
// what it masks (masked_sums.h). 0 times infinity is NaN, so no constant may make numbers infinite
// at the padding, and those of a sum must be proven to be finite (padding_numbers.h).
absl::StatusOr<std::vector<InputMask>> CheckSamplesAreIndependent(const Graph& graph,
                                                                  int64_t samples,
                                                                  const SampleAxes& axes);
// The same for a graph whose nodes have no definition, by the workloads of its steps.
absl::Status CheckSamplesAreIndependent(const Graph& graph, const Partition& partition,
                                        int64_t samples, const SampleAxes& axes);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_
