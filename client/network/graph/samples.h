#ifndef HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_
#define HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"
#include "common/ir/workload.h"

// Whether a network that was imported for n samples may run fewer, with its inputs padded behind
// the samples. Two checks together prove it. The first one compares the imports for both numbers:
// apart from the extents, they must be the same, and constants that grow with the number must begin
// with the same elements. The second one follows the samples through the network: each sample of an
// output must depend only on the same sample of the inputs and of these constants, or on samples
// before it, as behind an attention with a causal mask.
namespace hone::graph {

inline constexpr int kNoAxis = -1;

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

// Whether two workloads differ only in extents: of axes, tensors and the bounds of guards.
bool DifferOnlyInExtents(const ir::Workload& a, const ir::Workload& b);

// Checks the graph that CompareSamples got. FailedPrecondition: an output may depend on samples
// behind its own; the message names the node. REQUIRES: samples > 1.
//
// An attention with a causal mask is recognized by its operators: MatMul, Where or Add with a mask,
// Softmax and MatMul. The mask is a constant that hides what comes later with -1e30 or less, so
// that hidden positions get a share of 0, unless scores are as large as that. A mask that is
// an input proves nothing: it may hide all positions of a row, whose shares then depend on the
// padding.
absl::Status CheckSamplesAreIndependent(const Graph& graph, int64_t samples,
                                        const SampleAxes& axes);
// The same for a graph whose nodes have no definition, by the workloads of its steps.
absl::Status CheckSamplesAreIndependent(const Graph& graph, const Partition& partition,
                                        int64_t samples, const SampleAxes& axes);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_
