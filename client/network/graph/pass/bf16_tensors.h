#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_BF16_TENSORS_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_BF16_TENSORS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"

// The tensors between the kernels of a network, stored in bf16 instead of f32. The kernels still
// compute in f32: the one that writes such a tensor rounds it, and those that read it convert it
// back.
namespace hone::graph {

// A network with its division into steps.
struct DividedGraph {
  Graph graph;
  Partition partition;
};

// A network whose tensors between kernels are in bf16.
struct Bf16Network {
  DividedGraph divided;
  std::vector<ValueId> tensors;  // of the original graph, which are in bf16 here
};

// The tensors of f32 that a kernel writes and that only kernels read, directly or after they were
// reshaped, in the order in which they are computed. Tensors of less than 4 KiB and outputs of the
// graph are left out. `divided` is optimized.
std::vector<ValueId> TensorsBetweenKernels(const DividedGraph& divided);

// Stores the given tensors, which TensorsBetweenKernels returned, in bf16. A tensor stays in
// f32 if only an additional kernel could convert it. Errors as for MakePartition.
absl::StatusOr<Bf16Network> StoreInBf16(const DividedGraph& divided,
                                        absl::Span<const ValueId> tensors,
                                        const PartitionOptions& options);

// Returns the same network with a step after each of these tensors. The step rounds the tensor to
// bf16 and back if the value of a new input of the network is true. The network has the outputs
// that StoreInBf16 would give for any choice of tensors, and uses the kernels of the original
// tasks, which keep their numbers. The tasks after them are new. The new inputs, bool[1], come
// after the original ones. Errors as for MakeGroup.
absl::StatusOr<DividedGraph> RoundOnDemand(const DividedGraph& divided,
                                           absl::Span<const ValueId> tensors);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_BF16_TENSORS_H_
