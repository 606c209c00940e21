#ifndef HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_
#define HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"
#include "common/ir/workload.h"

// Whether a network that was imported for n samples may run fewer, with its inputs padded. Two
// checks together prove it. The first one compares the imports for both numbers: apart from the
// extents, they must be the same. The second one follows the samples through the network: each
// sample of an output must depend only on the same sample of the inputs.
namespace hone::graph {

inline constexpr int kNoAxis = -1;

// The dimension of each input and output whose extent is a multiple of the number of samples;
// kNoAxis if there is none.
struct SampleAxes {
  std::vector<int> inputs;
  std::vector<int> outputs;
};

// Compares the graphs of one model for two numbers of samples, before any pass has changed them.
// FailedPrecondition: they differ in more than the extents, or a tensor has several dimensions that
// grow with the number. The message names the node or tensor.
absl::StatusOr<SampleAxes> CompareSamples(const Graph& graph, int64_t samples, const Graph& other,
                                          int64_t other_samples);

// Whether two workloads differ only in extents: of axes, tensors and the bounds of guards.
bool DifferOnlyInExtents(const ir::Workload& a, const ir::Workload& b);

// FailedPrecondition: an output of the network may mix samples; the message names the step.
// `graph` and `partition` are those of a network that runs. REQUIRES: samples > 1.
absl::Status CheckSamplesAreIndependent(const Graph& graph, const Partition& partition,
                                        int64_t samples, const SampleAxes& axes);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_SAMPLES_H_
