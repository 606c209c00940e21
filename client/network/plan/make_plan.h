#ifndef HONE_CLIENT_NETWORK_PLAN_MAKE_PLAN_H_
#define HONE_CLIENT_NETWORK_PLAN_MAKE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"
#include "client/network/plan/network_kernel.h"
#include "client/network/plan/plan.h"

namespace hone::network {

// A part of the weights file: an unpacked constant, or the packed constants of a step. A GPU packs
// constants itself, so its file has only the former.
struct WeightsPiece {
  int64_t offset = 0;
  graph::ValueId constant = graph::kNoValue;
  int task = -1;                       // if packed: the task whose kernel packs it
  std::vector<graph::ValueId> inputs;  // if packed: the inputs of the step
};

struct PlannedNetwork {
  Plan plan;  // without the digest of the weights
  std::vector<WeightsPiece> pieces;
};

// Plans the memory and the steps of a network. `kernels` has one for each task. Aliases become no
// steps of the plan, but an output of the network that is a view of another tensor is copied. The
// unpacked form of a constant is left out of the weights if kernels read only the packed form; on a
// GPU, it is removed from the device after packing.
//
// InvalidArgument: the number of kernels is wrong, or a kernel belongs to another workload.
absl::StatusOr<PlannedNetwork> MakePlan(const graph::Graph& graph,
                                        const graph::Partition& partition,
                                        absl::Span<const NetworkKernel> kernels);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_MAKE_PLAN_H_
