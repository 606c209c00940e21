#ifndef HONE_TESTS_CLIENT_NETWORK_GRAPH_RUN_STEPS_H_
#define HONE_TESTS_CLIENT_NETWORK_GRAPH_RUN_STEPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/partition.h"
#include "common/ir/interpreter.h"

namespace hone::graph {

// Interprets the steps of a partition one after the other, and returns the outputs of the graph.
absl::StatusOr<std::vector<ir::Scalars>> RunSteps(const Graph& graph, const Partition& partition,
                                                  const std::vector<ir::Scalars>& inputs);

}  // namespace hone::graph

#endif  // HONE_TESTS_CLIENT_NETWORK_GRAPH_RUN_STEPS_H_
