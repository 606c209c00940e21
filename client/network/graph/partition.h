#ifndef HONE_CLIENT_NETWORK_GRAPH_PARTITION_H_
#define HONE_CLIENT_NETWORK_GRAPH_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "common/ir/workload.h"

namespace hone::graph {

// Of tensors in the memory of a CPU, in bytes.
inline constexpr int64_t kAlignment = 64;

// One step of a running network.
struct Step {
  enum class Kind {
    kKernel,  // runs the workload of a task
    kAlias,   // its inputs and outputs share memory; nothing runs
  };
  Kind kind = Kind::kKernel;
  std::vector<int> nodes;  // in graph order
  int task = -1;           // the index of the kernel's task; -1 for aliases
  // For a kernel, in the order of the workload's inputs and outputs.
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

// A workload that is tuned once for all steps that run it.
struct Task {
  ir::Workload workload;
  int64_t weight = 0;      // the number of steps that run it
  double flops = 0;        // per step
  std::vector<int> steps;  // indices into Partition::steps
};

// A network as steps that run one after the other. Every node is in one step. A step reads inputs
// of the graph, constants, and outputs of earlier steps.
struct Partition {
  std::vector<Step> steps;
  std::vector<Task> tasks;         // in the order of their first steps
  int64_t alignment = kAlignment;  // see PartitionOptions
};

struct PartitionOptions {
  bool fuse = true;    // whether a kernel may have several nodes
  int max_nodes = 32;  // per kernel
  // Of the memory of tensors, in bytes: a part of another tensor is only a view of it if it begins
  // at a multiple.
  int64_t alignment = kAlignment;
};

// Divides a graph into steps by the rules in partition/README.md. Equal graphs give equal
// partitions. Workloads with equal structural digests share a task.
//
// InvalidArgument: a node or one of its outputs is not needed (RemoveDead() removes those). Other
// errors are those of MakeGroup for a single node.
absl::StatusOr<Partition> MakePartition(const Graph& graph, const PartitionOptions& options = {});

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PARTITION_H_
