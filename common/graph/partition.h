#ifndef HONE_COMMON_GRAPH_PARTITION_H_
#define HONE_COMMON_GRAPH_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/graph.h"
#include "common/ir/workload.h"

namespace hone::graph {

// A part of a network that runs at once.
struct Step {
  enum class Kind {
    kKernel,  // runs the workload of a task
    kAlias,   // its outputs are its inputs' memory, or the other way around; nothing runs
  };
  Kind kind = Kind::kKernel;
  std::vector<int> nodes;  // of the graph, in its order
  int task = -1;           // the index of the kernel's task; -1 for aliases
  // Of a kernel, in the order of the workload.
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

// A workload that is tuned once for all steps that run it.
struct Task {
  ir::Workload workload;
  int64_t weight = 0;      // the number of its steps
  double flops = 0;        // of one step
  std::vector<int> steps;  // indices into Partition::steps
};

// A network as steps that run one after the other. Every node is in one step. A step reads inputs
// of the graph, constants, and outputs of steps before it.
struct Partition {
  std::vector<Step> steps;
  std::vector<Task> tasks;  // in the order of their first steps
};

struct PartitionOptions {
  bool fuse = true;    // whether kernels have several nodes
  int max_nodes = 32;  // of a kernel
};

// Divides a graph into steps; README.md in the folder `partition` states the rules. Equal graphs
// give equal partitions. Workloads with equal structural digests share a task.
//
// InvalidArgument: a node or one of its outputs is not needed; RemoveDead() removes them. Other
// errors are those of MakeGroup for a single node.
absl::StatusOr<Partition> MakePartition(const Graph& graph, const PartitionOptions& options = {});

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_PARTITION_H_
