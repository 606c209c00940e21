#ifndef HONE_CLIENT_NETWORK_MAKE_PLAN_H_
#define HONE_CLIENT_NETWORK_MAKE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/network_kernel.h"
#include "client/network/plan.h"
#include "common/graph/graph.h"
#include "common/graph/partition.h"

namespace hone::network {

// A part of the weights file: a constant as it is, or the packed constants of a step.
struct WeightsPiece {
  int64_t offset = 0;
  graph::ValueId constant = graph::kNoValue;
  int task = -1;                       // packed: whose kernel packs
  std::vector<graph::ValueId> inputs;  // packed: of the step
};

struct PlannedNetwork {
  Plan plan;  // without the digest of the weights
  std::vector<WeightsPiece> pieces;
};

// Plans the memory and the steps of a network. `kernels` has one for each task. Steps that are
// aliases need no step of the plan, but an output of the network that is a view of another tensor
// is copied. A constant that kernels read in packed form only is not a part of the weights.
//
// InvalidArgument: the number of kernels is wrong, or a kernel belongs to another workload.
absl::StatusOr<PlannedNetwork> MakePlan(const graph::Graph& graph,
                                        const graph::Partition& partition,
                                        absl::Span<const NetworkKernel> kernels);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_MAKE_PLAN_H_
