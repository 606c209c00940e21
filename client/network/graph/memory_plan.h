#ifndef HONE_CLIENT_NETWORK_GRAPH_MEMORY_PLAN_H_
#define HONE_CLIENT_NETWORK_GRAPH_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"

namespace hone::graph {

// Where a tensor is while a network runs.
struct Place {
  enum class Kind {
    kNowhere,  // in no memory: it exists only within a kernel
    kArena,
    kOutside,  // in the memory of an input, a constant or an output of the graph
  };
  Kind kind = Kind::kNowhere;
  ValueId outside = kNoValue;  // kOutside: that input, constant or output
  int64_t offset = 0;          // in bytes, from the start of the arena or of `outside`
};

struct MemoryPlan {
  std::vector<Place> places;  // one for each value of the graph
  int64_t arena_bytes = 0;
};

// Assigns memory to the tensors that the steps of a partition exchange. Tensors share memory if
// they are not needed at the same time, or if an alias makes them views of the same memory. Larger
// tensors are placed first, each in the smallest gap that holds it (Pisarchyk and Lee, 2020).
// Tensors are aligned as the partition says if the caller's buffers are. An output of a kernel
// never overlaps its inputs, as the kernel ABI requires.
//
// REQUIRES: the partition is one of this graph.
MemoryPlan PlanMemory(const Graph& graph, const Partition& partition);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_MEMORY_PLAN_H_
