#ifndef HONE_CLIENT_NETWORK_ONNX_RUNNING_ORDER_H_
#define HONE_CLIENT_NETWORK_ONNX_RUNNING_ORDER_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace hone::onnx {

// "node 'conv1' (Conv)".
std::string Describe(const ::onnx::NodeProto& node);

// Returns the nodes that the model's outputs need, in topological order: the order of the model if
// it is topological. `given`: the tensors that are known, which are inputs and initializers.
//
// InvalidArgument, with the names of nodes and tensors: a tensor is computed twice, or read or
// output but never computed; the nodes form a cycle.
absl::StatusOr<std::vector<int>> RunningOrder(const ::onnx::GraphProto& graph,
                                              const std::set<std::string>& given);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_RUNNING_ORDER_H_
